// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/random_descriptors/random_descriptor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

#include "engine/base/status_macros.h"
#include "tests/engine/primitives/random_descriptors/random_steps.h"
#include "tests/engine/primitives/random_descriptors/random_windows.h"
#include "tests/engine/primitives/random_descriptors/tensor_maker.h"

namespace tilewire::testing {
namespace {

Dims ImageSizes(Random& random) {
  return RandomSizes(random, Chance(random, 60) ? 4 : static_cast<int>(random.Integer(1, 6)));
}

// Sets src and dst of one shape.
template <typename Desc>
absl::Status FillUnary(TensorMaker& make, const Dims& dims, Desc* desc) {
  ABSL_ASSIGN_OR_RETURN(desc->src, make.Src(dims));
  if (Chance(make.random(), 40)) {
    desc->dst = desc->src;
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(desc->dst, make.Dst(dims));
  return absl::OkStatus();
}

int RandomAxis(TensorMaker& make, const Dims& dims) {
  const int64_t last = static_cast<int64_t>(dims.size()) - 1;
  const int64_t axis = make.Number(make.random().Integer(0, last));
  return static_cast<int>(std::clamp<int64_t>(axis, -1000, 1000));
}

absl::StatusOr<OpDesc> RandomReorder(TensorMaker& make) {
  ReorderDesc desc;
  const Dims dims = ImageSizes(make.random());
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Src(dims));
  if (Chance(make.random(), 30)) {
    ABSL_ASSIGN_OR_RETURN(desc.dst, make.Weights(dims));
  } else {
    ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst(dims));
  }
  return desc;
}

absl::StatusOr<OpDesc> RandomShuffle(TensorMaker& make) {
  ShuffleDesc desc;
  desc.prop_kind = make.Propagation();
  const Dims dims = ImageSizes(make.random());
  ABSL_RETURN_IF_ERROR(FillUnary(make, dims, &desc));
  desc.axis = RandomAxis(make, dims);
  const int64_t size =
      desc.axis >= 0 && desc.axis < static_cast<int>(dims.size()) ? dims[desc.axis] : 1;
  std::vector<int64_t> divisors = {1};
  for (int64_t d = 2; d <= std::min<int64_t>(size, 64); ++d) {
    if (size % d == 0) divisors.push_back(d);
  }
  desc.group_size =
      make.Number(divisors[make.random().Integer(0, static_cast<int64_t>(divisors.size()) - 1)]);
  return desc;
}

absl::StatusOr<OpDesc> RandomConcat(TensorMaker& make) {
  ConcatDesc desc;
  Dims dims = ImageSizes(make.random());
  desc.axis = RandomAxis(make, dims);
  const bool valid = desc.axis >= 0 && desc.axis < static_cast<int>(dims.size());
  int64_t total = 0;
  for (int64_t n = make.random().Integer(0, 5); n > 0; --n) {
    if (valid) total += dims[desc.axis] = RandomSize(make.random());
    ABSL_ASSIGN_OR_RETURN(MemoryDesc src, make.Src(dims));
    desc.srcs.push_back(std::move(src));
  }
  if (valid) dims[desc.axis] = total;
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst(dims));
  return desc;
}

absl::StatusOr<OpDesc> RandomSum(TensorMaker& make) {
  SumDesc desc;
  const Dims dims = ImageSizes(make.random());
  for (int64_t n = make.random().Integer(0, 5); n > 0; --n) {
    ABSL_ASSIGN_OR_RETURN(MemoryDesc src, make.Src(dims));
    desc.srcs.push_back(std::move(src));
    desc.scales.push_back(make.Real());
  }
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst(dims));
  return desc;
}

absl::StatusOr<OpDesc> RandomEltwisePrimitive(TensorMaker& make) {
  EltwiseDesc desc;
  desc.prop_kind = make.Propagation();
  desc.op = make.Eltwise();
  ABSL_RETURN_IF_ERROR(FillUnary(make, ImageSizes(make.random()), &desc));
  return desc;
}

absl::StatusOr<OpDesc> RandomSoftmax(TensorMaker& make) {
  SoftmaxDesc desc;
  desc.prop_kind = make.Propagation();
  const Dims dims = ImageSizes(make.random());
  ABSL_RETURN_IF_ERROR(FillUnary(make, dims, &desc));
  desc.axis = RandomAxis(make, dims);
  desc.algorithm =
      Chance(make.random(), 75) ? SoftmaxAlgorithm::kSoftmax : SoftmaxAlgorithm::kLogSoftmax;
  return desc;
}

absl::StatusOr<OpDesc> RandomInnerProduct(TensorMaker& make) {
  InnerProductDesc desc;
  desc.prop_kind = make.Propagation();
  Dims src = RandomSizes(make.random(), static_cast<int>(make.random().Integer(2, 5)));
  Dims weights = src;
  weights[0] = RandomSize(make.random());
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Src(src));
  ABSL_ASSIGN_OR_RETURN(desc.weights, make.Weights(weights));
  ABSL_ASSIGN_OR_RETURN(desc.bias, make.Bias({weights[0]}));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst({src[0], weights[0]}));
  return desc;
}

absl::StatusOr<OpDesc> RandomLrn(TensorMaker& make) {
  LrnDesc desc;
  desc.prop_kind = make.Propagation();
  desc.algorithm =
      Pick(make.random(), {LrnAlgorithm::kAcrossChannels, LrnAlgorithm::kWithinChannel});
  ABSL_RETURN_IF_ERROR(FillUnary(make, ImageSizes(make.random()), &desc));
  desc.local_size = Chance(make.random(), 5) ? RandomExtreme(make.random())
                                             : make.Number(make.random().Integer(1, 20));
  desc.alpha = make.Real();
  desc.beta = make.Real();
  desc.k = make.Real();
  return desc;
}

absl::StatusOr<OpDesc> RandomBinary(TensorMaker& make) {
  BinaryDesc desc;
  desc.algorithm = static_cast<BinaryAlgorithm>(make.random().Integer(
      static_cast<int>(BinaryAlgorithm::kAdd), static_cast<int>(BinaryAlgorithm::kPRelu)));
  const Dims dims = ImageSizes(make.random());
  Dims broadcast = dims;
  const int64_t kept = Chance(make.random(), 40) ? 100 : 50;  // percent of dimensions
  for (int64_t& dim : broadcast) dim = Chance(make.random(), static_cast<int>(kept)) ? dim : 1;
  ABSL_ASSIGN_OR_RETURN(desc.src0, make.Src(dims));
  ABSL_ASSIGN_OR_RETURN(desc.src1, make.Src(broadcast));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst(dims));
  return desc;
}

absl::StatusOr<OpDesc> RandomPrelu(TensorMaker& make) {
  PreluDesc desc;
  const Dims dims = ImageSizes(make.random());
  Dims shared = dims;
  for (int64_t& dim : shared) dim = Chance(make.random(), 50) ? dim : 1;
  ABSL_RETURN_IF_ERROR(FillUnary(make, dims, &desc));
  ABSL_ASSIGN_OR_RETURN(desc.weights, make.Weights(shared));
  return desc;
}

template <typename Desc>
absl::StatusOr<OpDesc> RandomNormalization(TensorMaker& make) {
  Desc desc;
  desc.prop_kind = make.Propagation();
  ABSL_RETURN_IF_ERROR(FillUnary(make, ImageSizes(make.random()), &desc));
  desc.epsilon = make.Real();
  desc.use_global_stats = Chance(make.random(), 50);
  desc.use_scale_shift = Chance(make.random(), 50);
  if constexpr (requires { desc.fuse_relu; }) {
    desc.fuse_relu = Chance(make.random(), 50);
    if (Chance(make.random(), 30)) desc.relu_limit = make.Real();
    if (Chance(make.random(), 30)) desc.addend = desc.src;
  }
  return desc;
}

absl::StatusOr<OpDesc> RandomResampling(TensorMaker& make) {
  ResamplingDesc desc;
  desc.algorithm =
      Pick(make.random(), {ResamplingAlgorithm::kNearest, ResamplingAlgorithm::kLinear});
  const Dims src = RandomSizes(make.random(), static_cast<int>(make.random().Integer(3, 5)));
  Dims dst = src;
  for (size_t d = 2; d < dst.size(); ++d) {
    dst[d] = Chance(make.random(), 50) ? 2 * src[d] : RandomSize(make.random());
  }
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Src(src));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst(dst));
  return desc;
}

absl::StatusOr<OpDesc> RandomReduction(TensorMaker& make) {
  ReductionDesc desc;
  desc.algorithm = static_cast<ReductionAlgorithm>(
      make.random().Integer(0, static_cast<int>(ReductionAlgorithm::kNormLpPowerPSum)));
  const Dims src = ImageSizes(make.random());
  Dims dst = src;
  for (int64_t& dim : dst) dim = Chance(make.random(), 50) ? dim : 1;
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Src(src));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst(dst));
  desc.p = 1 + make.Real();
  desc.eps = make.Real();
  return desc;
}

absl::StatusOr<OpDesc> RandomMatmul(TensorMaker& make) {
  MatmulDesc desc;
  Random& random = make.random();
  const Dims dims = RandomSizes(random, static_cast<int>(random.Integer(2, 5)));
  const size_t row = dims.size() - 2, column = dims.size() - 1;
  const int64_t inner = RandomSize(random);
  Dims src = dims, weights = dims, bias = dims;
  src[column] = weights[row] = inner;
  for (size_t d = 0; d < row; ++d) {
    if (Chance(random, 20)) src[d] = 1;
    if (Chance(random, 20)) weights[d] = 1;
  }
  for (int64_t& dim : bias) dim = Chance(random, 50) ? dim : 1;
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Src(src));
  ABSL_ASSIGN_OR_RETURN(desc.weights, make.Weights(weights));
  ABSL_ASSIGN_OR_RETURN(desc.bias, make.Bias(bias));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst(dims));
  const auto zero_of = [&random](const MemoryDesc& md) {
    if (!IsByte(md.data_type())) return int32_t{0};
    const int32_t lowest = md.data_type() == DataType::kS8 ? -128 : 0;
    return lowest + static_cast<int32_t>(random.Integer(0, 255));
  };
  desc.src_zero_point = zero_of(desc.src);
  desc.weights_zero_point = zero_of(desc.weights);
  return desc;
}

// By the order of OpDesc; the primitives with the most implementations come up more often.
absl::StatusOr<OpDesc> RandomOperation(TensorMaker& make) {
  using Make = absl::StatusOr<OpDesc> (*)(TensorMaker&);
  return Pick<Make>(make.random(), {RandomReorder,
                                    RandomReorder,
                                    RandomReorder,
                                    RandomShuffle,
                                    RandomConcat,
                                    RandomSum,
                                    RandomConvolution,
                                    RandomConvolution,
                                    RandomConvolution,
                                    RandomConvolution,
                                    RandomConvolution,
                                    RandomEltwisePrimitive,
                                    RandomSoftmax,
                                    RandomPooling,
                                    RandomPooling,
                                    RandomInnerProduct,
                                    RandomInnerProduct,
                                    RandomLrn,
                                    RandomBinary,
                                    RandomNormalization<BatchNormalizationDesc>,
                                    RandomResampling,
                                    RandomReduction,
                                    RandomNormalization<LayerNormalizationDesc>,
                                    RandomMatmul,
                                    RandomMatmul,
                                    RandomDeconvolution,
                                    RandomDeconvolution,
                                    RandomSelect,
                                    RandomGather,
                                    RandomPrelu,
                                    RandomGatherChannels,
                                    RandomQuantize,
                                    RandomIntegerSum,
                                    RandomInterpolate,
                                    RandomMaxWindow,
                                    RandomTopK,
                                    RandomElementwise,
                                    RandomRnn,
                                    RandomRoiAlign})(make);
}

}  // namespace

absl::StatusOr<OpDesc> RandomTrainedOperation(TensorMaker& make) {
  using Make = absl::StatusOr<OpDesc> (*)(TensorMaker&);
  return Pick<Make>(make.random(), {RandomShuffle,
                                    RandomConvolution,
                                    RandomConvolution,
                                    RandomConvolution,
                                    RandomConvolution,
                                    RandomEltwisePrimitive,
                                    RandomSoftmax,
                                    RandomPooling,
                                    RandomPooling,
                                    RandomInnerProduct,
                                    RandomLrn,
                                    RandomBinary,
                                    RandomNormalization<BatchNormalizationDesc>,
                                    RandomNormalization<BatchNormalizationDesc>,
                                    RandomNormalization<LayerNormalizationDesc>,
                                    RandomResampling,
                                    RandomReduction,
                                    RandomMatmul,
                                    RandomDeconvolution,
                                    RandomGather,
                                    RandomPrelu})(make);
}

absl::StatusOr<Attributes> RandomAttributes(TensorMaker& make, const OpDesc& desc) {
  Random& random = make.random();
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  if (Chance(random, 35)) {
    for (int64_t n = random.Integer(1, Chance(random, 90) ? 2 : 5); n > 0; --n) {
      const PostOp op = Pick<PostOp>(random, {EltwisePostOp{make.Eltwise(), make.Real()},
                                              EltwisePostOp{}, SumPostOp{make.Real()}});
      ABSL_RETURN_IF_ERROR(attributes.post_ops.Append(op));
    }
    if (Chance(random, 10)) {
      ABSL_RETURN_IF_ERROR(attributes.post_ops.Append(MaxPoolingPostOp{}));
    }
  }
  if (Chance(random, 15)) {
    const MemoryDesc& dst = *TensorsOf(desc)[0];
    int64_t count = 1;
    const int mask = static_cast<int>(random.Integer(0, Chance(random, 80) ? 2 : 255));
    for (int d = 0; d < dst.rank() && count < 100000; ++d) count *= mask >> d & 1 ? dst.dim(d) : 1;
    count = std::clamp<int64_t>(make.Number(count), 0, 100000);
    attributes.output_scales.mask = mask;
    attributes.output_scales.scales.assign(count, make.Real());
  }
  if (Chance(random, 25)) {
    attributes.precision = Pick(random, {Precision::kFast, Precision::kBf16});
  }
  return attributes;
}

absl::StatusOr<RandomCase> RandomDescriptor(Random& random) {
  TensorMaker make(random);
  ABSL_ASSIGN_OR_RETURN(OpDesc desc, RandomOperation(make));
  ABSL_ASSIGN_OR_RETURN(Attributes attributes, RandomAttributes(make, desc));
  return RandomCase{std::move(desc), std::move(attributes)};
}

}  // namespace tilewire::testing
