// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/pooled_destination.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::convolution {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... what) {
  return InvalidArgument("convolution: ", what...);
}

absl::Status Differ(absl::string_view a, int64_t x, absl::string_view b, int64_t y) {
  return Invalid(a, " is ", x, ", but ", b, " is ", y);
}

absl::Status ValidateRanks(const ConvolutionDesc& desc) {
  if (desc.src.IsZero() || desc.weights.IsZero() || desc.dst.IsZero()) {
    return Invalid("src, weights and dst must not be the zero descriptor");
  }
  const int rank = desc.src.rank();
  if (rank < 3 || rank > 5) {
    return Invalid("src has rank ", rank, ", allowed are 3, 4 and 5");
  }
  if (desc.dst.rank() != rank) return Differ("rank of dst", desc.dst.rank(), "rank of src", rank);
  if (desc.weights.rank() != rank && desc.weights.rank() != rank + 1) {
    return Invalid("weights have rank ", desc.weights.rank(), ", allowed are ", rank,
                   " and, with groups, ", rank + 1);
  }
  if (!desc.bias.IsZero() && desc.bias.rank() != 1) {
    return Invalid("bias has rank ", desc.bias.rank(), ", allowed is 1");
  }
  for (const auto& [name, values] :
       {std::pair{"strides", &desc.strides}, std::pair{"dilations", &desc.dilations},
        std::pair{"padding_left", &desc.padding_left},
        std::pair{"padding_right", &desc.padding_right}}) {
    if (static_cast<int>(values->size()) != rank - 2) {
      return Differ(absl::StrCat("size of ", name), values->size(),
                    "the number of spatial dimensions", rank - 2);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateChannels(const ConvolutionDesc& desc) {
  const int group = desc.weights.rank() - desc.src.rank();
  const int64_t groups = group == 1 ? desc.weights.dim(0) : 1;
  for (int i = 0; i < desc.weights.rank(); ++i) {
    if (desc.weights.dim(i) < 1) return Invalid("weights dimension ", i, " is empty");
  }
  const std::optional<int64_t> oc = CheckedMul(groups, desc.weights.dim(group));
  const std::optional<int64_t> ic = CheckedMul(groups, desc.weights.dim(group + 1));
  if (!oc || !ic) return Invalid("the number of channels overflows");
  if (desc.src.dim(0) != desc.dst.dim(0)) {
    return Differ("N of dst", desc.dst.dim(0), "N of src", desc.src.dim(0));
  }
  if (desc.src.dim(1) != *ic) {
    return Differ("C of src", desc.src.dim(1), "groups * I of weights", *ic);
  }
  if (desc.dst.dim(1) != *oc) return Differ("O of dst", desc.dst.dim(1), "O of weights", *oc);
  if (!desc.bias.IsZero() && desc.bias.dim(0) != *oc) {
    return Differ("size of bias", desc.bias.dim(0), "O of weights", *oc);
  }
  return absl::OkStatus();
}

// (in + left + right - extent of the kernel) / stride + 1; nullopt when the kernel does not fit or
// a number overflows.
std::optional<int64_t> OutputSize(const ConvolutionDesc& desc, int i, int64_t in, int64_t kernel) {
  const std::optional<int64_t> taps = CheckedMul(kernel - 1, desc.dilations[i] + 1);
  std::optional<int64_t> padded = CheckedAdd(in, desc.padding_left[i]);
  if (padded) padded = CheckedAdd(*padded, desc.padding_right[i]);
  if (!taps || !padded || *taps >= *padded) return std::nullopt;
  return (*padded - *taps - 1) / desc.strides[i] + 1;
}

absl::Status ValidateSpatial(const ConvolutionDesc& desc) {
  constexpr int64_t kLargest = int64_t{1}
                               << 30;  // sums and products of a few of them stay in int64
  static constexpr const char* kNames[] = {"depth", "height", "width"};
  const int spatial = desc.src.rank() - 2;
  for (int i = 0; i < spatial; ++i) {
    const std::string name = kNames[3 - spatial + i];
    if (desc.strides[i] < 1 || desc.strides[i] > kLargest) {
      return Invalid("stride along ", name, " is ", desc.strides[i], "; allowed are 1 to ",
                     kLargest);
    }
    if (desc.dilations[i] < 0 || desc.dilations[i] > kLargest) {
      return Invalid("dilation along ", name, " is ", desc.dilations[i], "; allowed are 0 to ",
                     kLargest);
    }
    for (int64_t padding : {desc.padding_left[i], desc.padding_right[i]}) {
      if (padding < 0 || padding > kLargest) {
        return Invalid("padding along ", name, " is ", padding, "; allowed are 0 to ", kLargest);
      }
    }
    const int64_t in = desc.src.dim(2 + i);
    if (in < 1) return Invalid(name, " of src is empty");
    const int64_t kernel = desc.weights.dim(desc.weights.rank() - spatial + i);
    const std::optional<int64_t> out = OutputSize(desc, i, in, kernel);
    if (!out) {
      return Invalid(name, " ", in, " with its padding is smaller than the kernel ", kernel);
    }
    if (*out != desc.dst.dim(2 + i)) {
      return Differ(absl::StrCat(name, " of dst"), desc.dst.dim(2 + i),
                    "what src, kernel, strides and padding give", *out);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateRange(const ConvolutionDesc& desc) {
  const MemoryDesc& range = desc.range;
  const int32_t zero_point = desc.weights_zero_point;
  if (zero_point < -128 || zero_point > 127 || (range.IsZero() && zero_point != 0)) {
    return Invalid("the weights' zero point is ", zero_point, ", allowed ",
                   range.IsZero() ? "is 0 without a range" : "are -128 to 127");
  }
  if (range.IsZero()) return absl::OkStatus();
  if (range.dims() != Dims{2} || range.data_type() != DataType::kF32 || !range.IsPlain() ||
      range.stride(0) != 1) {
    return Invalid("the range is ", range.ToString(), ", expected f32 [2]");
  }
  if (desc.src.data_type() == DataType::kU8) return absl::OkStatus();
  return Unimplemented("convolution: only a src of u8 has a range");
}

// Gradients that Winograd's algorithm is asked for. Rows refuse them, too, but the reasons of all
// rows would bury this one.
absl::Status ValidateGradientAlgorithm(const ConvolutionDesc& desc) {
  if (desc.algorithm != ConvolutionAlgorithm::kWinograd) return absl::OkStatus();
  if (desc.prop_kind == PropKind::kBackwardWeights)
    return Unimplemented(
        "convolution: backward_weights has no Winograd algorithm, allowed are auto and direct");
  if (desc.prop_kind != PropKind::kBackwardData) return absl::OkStatus();
  const Geometry geometry = GeometryOf(desc);
  const Spatial ones = {1, 1, 1};
  if (desc.src.rank() == 4 && !geometry.grouped_weights && geometry.kernel == Spatial{1, 3, 3} &&
      geometry.stride == ones && geometry.tap_step == ones)
    return absl::OkStatus();
  return Unimplemented(
      "convolution: Winograd's backward_data is for windows of 3x3 with stride 1, without dilation "
      "and groups; for others the algorithm is auto or direct");
}

}  // namespace

absl::Status Validate(const ConvolutionDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(ValidateRanks(desc));
  ABSL_RETURN_IF_ERROR(ValidateChannels(desc));
  ABSL_RETURN_IF_ERROR(ValidateSpatial(desc));
  ABSL_RETURN_IF_ERROR(ValidateRange(desc));
  if (IsBackward(desc.prop_kind)) {
    ABSL_RETURN_IF_ERROR(ValidateGradientAlgorithm(desc));
    return CheckWeightedGradients("convolution", desc, attributes);
  }
  if (desc.dst.format_kind() == FormatKind::kBlocked && desc.dst.Overlaps()) {
    return Invalid("elements of dst share an address");
  }
  ABSL_RETURN_IF_ERROR(CheckChannelScales("convolution", desc.dst, attributes.output_scales));
  const std::vector<float>* slopes = attributes.post_ops.Slopes();
  if (slopes != nullptr && static_cast<int64_t>(slopes->size()) != desc.dst.dim(1))
    return Differ("the slopes of prelu", slopes->size(), "channels of dst", desc.dst.dim(1));
  return ValidateMaxPooling(desc, attributes);
}

}  // namespace tilewire::convolution
