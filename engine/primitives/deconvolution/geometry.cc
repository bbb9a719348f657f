// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/deconvolution/geometry.h"

#include <optional>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::deconvolution {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... what) {
  return InvalidArgument("deconvolution: ", what...);
}

absl::Status ValidateRanks(const DeconvolutionDesc& desc) {
  ABSL_RETURN_IF_ERROR(CheckDestination("deconvolution: dst", desc.dst));
  const int rank = desc.src.rank();
  if (rank < 3 || rank > 5 || desc.dst.rank() != rank ||
      (desc.weights.rank() != rank && desc.weights.rank() != rank + 1) ||
      (!desc.bias.IsZero() && desc.bias.rank() != 1)) {
    return ShapeMismatch("deconvolution", desc,
                         "takes rank 3 to 5, weights of one more with groups");
  }
  for (const Dims* values :
       {&desc.strides, &desc.dilations, &desc.padding_left, &desc.padding_right}) {
    if (static_cast<int>(values->size()) != rank - 2) {
      return Invalid("strides, dilations and paddings need ", rank - 2, " values");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateChannels(const DeconvolutionDesc& desc) {
  const int group = desc.weights.rank() - desc.src.rank();
  for (int d = 0; d < desc.weights.rank(); ++d) {
    if (desc.weights.dim(d) < 1) return Invalid("weights dimension ", d, " is empty");
  }
  const int64_t groups = group == 1 ? desc.weights.dim(0) : 1;
  const std::optional<int64_t> oc = CheckedMul(groups, desc.weights.dim(group));
  const std::optional<int64_t> ic = CheckedMul(groups, desc.weights.dim(group + 1));
  if (desc.src.dim(0) != desc.dst.dim(0) || desc.src.dim(1) != ic || desc.dst.dim(1) != oc ||
      (!desc.bias.IsZero() && desc.bias.dim(0) != oc)) {
    return ShapeMismatch("deconvolution", desc, "batch or channels do not fit");
  }
  return absl::OkStatus();
}

absl::Status ValidateSpatial(const DeconvolutionDesc& desc, int i) {
  constexpr int64_t kLargest = int64_t{1} << 30;  // no sum or product below overflows
  const int64_t kernel = desc.weights.dim(desc.weights.rank() - desc.src.rank() + 2 + i);
  const int64_t in = desc.src.dim(2 + i), out = desc.dst.dim(2 + i);
  const auto fits = [](int64_t value, int64_t least) {
    return value >= least && value <= kLargest;
  };
  if (!fits(desc.strides[i], 1) || !fits(desc.dilations[i], 0) || !fits(desc.padding_left[i], 0) ||
      !fits(desc.padding_right[i], 0) || !fits(in, 1) || !fits(kernel, 1)) {
    return Invalid("spatial dimension ", i, ": src ", in, ", kernel ", kernel, ", stride ",
                   desc.strides[i], ", dilation ", desc.dilations[i], ", padding ",
                   desc.padding_left[i], " and ", desc.padding_right[i]);
  }
  const int64_t expected = (in - 1) * desc.strides[i] + (kernel - 1) * (desc.dilations[i] + 1) + 1 -
                           desc.padding_left[i] - desc.padding_right[i];
  if (out != expected || out < 1) {
    return Invalid("spatial dimension ", i, ": dst has ", out,
                   ", src, kernel, stride and padding give ", expected);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Source> Axis::SourcesOf(int64_t o) const {
  std::vector<Source> sources;
  for (int64_t tap = 0; tap < kernel; ++tap) {
    const int64_t from = o + pad - tap * tap_step;
    if (from < 0 || from % stride != 0 || from / stride >= in) continue;
    sources.push_back({tap, from / stride});
  }
  return sources;
}

Geometry GeometryOf(const DeconvolutionDesc& desc) {
  Geometry geometry;
  const int rank = desc.src.rank(), group = desc.weights.rank() - rank;
  geometry.grouped_weights = group == 1;
  geometry.batch = desc.src.dim(0);
  geometry.groups = group == 1 ? desc.weights.dim(0) : 1;
  geometry.oc = desc.weights.dim(group);
  geometry.ic = desc.weights.dim(group + 1);
  const auto stride = [](const MemoryDesc& md, int d) {
    return md.format_kind() == FormatKind::kBlocked ? md.stride(d) : 0;
  };
  for (int i = 0; i < rank - 2; ++i) {
    Axis& axis = geometry.axes[5 - rank + i];
    const int d = i + 2;
    axis = {desc.src.dim(d),
            desc.dst.dim(d),
            desc.weights.dim(d + group),
            desc.strides[i],
            desc.dilations[i] + 1,
            desc.padding_left[i],
            stride(desc.src, d),
            stride(desc.weights, d + group),
            stride(desc.dst, d)};
  }
  return geometry;
}

OutputWork WorkOf(const Geometry& geometry) {
  OutputWork work;
  for (const Axis& axis : geometry.axes) {
    work.outputs *= static_cast<double>(axis.out);
    work.taps *= static_cast<double>(DivUp(axis.kernel, axis.stride));
  }
  return work;
}

absl::Status Validate(const DeconvolutionDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(ValidateRanks(desc));
  ABSL_RETURN_IF_ERROR(ValidateChannels(desc));
  for (int i = 0; i < desc.src.rank() - 2; ++i) ABSL_RETURN_IF_ERROR(ValidateSpatial(desc, i));
  if (IsBackward(desc.prop_kind)) return CheckWeightedGradients("deconvolution", desc, attributes);
  return absl::OkStatus();
}

}  // namespace tilewire::deconvolution
