// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/random_descriptors/random_windows.h"

#include <optional>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire::testing {
namespace {

// Windows along the spatial dimensions: sizes of the image that they move over, of the kernel and
// of the positions they take.
struct Windows {
  Dims image, kernel, positions;
  Dims strides, dilations, left, right;
};

// 1 to 3 in most cases.
int64_t RandomStep(Random& random) {
  if (Chance(random, 2))
    return Pick<int64_t>(random, {1 << 20, int64_t{1} << 31, int64_t{1} << 40});
  return Chance(random, 60) ? 1 : random.Integer(2, 3);
}

int64_t RandomPadding(Random& random, int64_t kernel) {
  if (Chance(random, 2)) return RandomExtreme(random);
  if (Chance(random, 5)) return random.Integer(0, 40);
  return random.Integer(0, kernel - 1);
}

// (image + left + right - extent of the kernel) / stride + 1, unless a number overflows.
std::optional<int64_t> Positions(const Windows& w, int d) {
  const auto reach = CheckedMul(w.kernel[d] - 1, w.dilations[d] + 1);
  auto padded = CheckedAdd(w.image[d], w.left[d]);
  if (padded) padded = CheckedAdd(*padded, w.right[d]);
  if (!reach || !padded || *reach >= *padded) return std::nullopt;
  return (*padded - *reach - 1) / w.strides[d] + 1;
}

Windows RandomWindows(Random& random, int spatial, bool dilated) {
  Windows w;
  w.image = RandomSizes(random, spatial);
  const int64_t square = Pick<int64_t>(random, {1, 1, 2, 3, 3, 3, 3, 5, 7});
  const bool plain = Chance(random, 40);  // stride 1 and the padding that keeps the size
  for (int d = 0; d < spatial; ++d) {
    const int64_t kernel = Chance(random, 80) ? square : random.Integer(1, 12);
    w.kernel.push_back(kernel);
    w.strides.push_back(plain ? 1 : RandomStep(random));
    w.dilations.push_back(dilated && !plain && Chance(random, 20) ? RandomStep(random) : 0);
    w.left.push_back(plain ? kernel / 2 : RandomPadding(random, kernel));
    w.right.push_back(plain ? kernel / 2 : RandomPadding(random, kernel));
    w.positions.push_back(Positions(w, d).value_or(1));
  }
  return w;
}

Dims Joined(Dims first, const Dims& spatial) {
  first.insert(first.end(), spatial.begin(), spatial.end());
  return first;
}

// Groups and the channels of each. Depthwise in one case of six.
struct Channels {
  bool grouped;
  int64_t groups, in, out;
};
Channels RandomChannels(Random& random) {
  if (Chance(random, 16)) return {true, RandomSize(random), 1, 1};
  const bool grouped = Chance(random, 25);
  return {grouped, grouped ? random.Integer(1, 5) : 1, RandomSize(random), RandomSize(random)};
}

// `moved`: the tensor that the windows move over, the other has an element per position.
template <typename Desc>
absl::Status FillConvolved(TensorMaker& make, bool src_is_moved, Desc* desc) {
  Random& random = make.random();
  const int spatial = Chance(random, 80) ? 2 : static_cast<int>(random.Integer(1, 3));
  const Windows w = RandomWindows(random, spatial, true);
  const Channels c = RandomChannels(random);
  const int64_t batch = Chance(random, 70) ? 1 : RandomSize(random);
  Dims weights = c.grouped ? Dims{c.groups, c.out, c.in} : Dims{c.out, c.in};
  desc->prop_kind = make.Propagation();
  ABSL_ASSIGN_OR_RETURN(
      desc->src, make.Src(Joined({batch, c.groups * c.in}, src_is_moved ? w.image : w.positions)));
  ABSL_ASSIGN_OR_RETURN(desc->weights, make.Weights(Joined(std::move(weights), w.kernel)));
  ABSL_ASSIGN_OR_RETURN(desc->bias, make.Bias({c.groups * c.out}));
  ABSL_ASSIGN_OR_RETURN(
      desc->dst, make.Dst(Joined({batch, c.groups * c.out}, src_is_moved ? w.positions : w.image)));
  desc->strides = make.Numbers(w.strides);
  desc->dilations = make.Numbers(w.dilations);
  desc->padding_left = make.Numbers(w.left);
  desc->padding_right = make.Numbers(w.right);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpDesc> RandomConvolution(TensorMaker& make) {
  ConvolutionDesc desc;
  desc.algorithm =
      Pick(make.random(), {ConvolutionAlgorithm::kAuto, ConvolutionAlgorithm::kAuto,
                           ConvolutionAlgorithm::kDirect, ConvolutionAlgorithm::kWinograd});
  ABSL_RETURN_IF_ERROR(FillConvolved(make, true, &desc));
  return desc;
}

absl::StatusOr<OpDesc> RandomDeconvolution(TensorMaker& make) {
  DeconvolutionDesc desc;
  ABSL_RETURN_IF_ERROR(FillConvolved(make, false, &desc));
  return desc;
}

absl::StatusOr<OpDesc> RandomPooling(TensorMaker& make) {
  Random& random = make.random();
  const int spatial = Chance(random, 80) ? 2 : static_cast<int>(random.Integer(1, 3));
  const Windows w = RandomWindows(random, spatial, false);
  const Dims outer = {Chance(random, 70) ? 1 : RandomSize(random), RandomSize(random)};
  PoolingDesc desc;
  desc.prop_kind = make.Propagation();
  desc.algorithm = Pick(random, {PoolingAlgorithm::kMax, PoolingAlgorithm::kAvgIncludePadding,
                                 PoolingAlgorithm::kAvgExcludePadding});
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Src(Joined(outer, w.image)));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst(Joined(outer, w.positions)));
  desc.kernel = make.Numbers(w.kernel);
  desc.strides = make.Numbers(w.strides);
  desc.padding_left = make.Numbers(w.left);
  desc.padding_right = make.Numbers(w.right);
  return desc;
}

}  // namespace tilewire::testing
