// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/primitives/pooling/pooling.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {

absl::string_view AlgorithmName(PoolingAlgorithm algorithm) {
  constexpr absl::string_view kNames[] = {"max", "avg_include_padding", "avg_exclude_padding"};
  return kNames[static_cast<size_t>(algorithm)];
}

namespace pooling {

absl::StatusOr<PoolingDesc> ResolveDefaults(const PoolingDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  const DataType type = desc.src.data_type();
  const bool is_maximum_of_bf16 =
      type == DataType::kBf16 && desc.algorithm == PoolingAlgorithm::kMax;
  if (type != DataType::kF32 && !is_maximum_of_bf16) ABSL_RETURN_IF_ERROR(RequireInteger(desc.src));
  ABSL_RETURN_IF_ERROR(RequireType(desc.src.data_type(), {&desc.dst}));
  PoolingDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::Status RequireInteger(const MemoryDesc& desc) {
  const DataType type = desc.data_type();
  if (IsByte(type) || type == DataType::kS32) {
    return absl::OkStatus();
  }
  return Unimplemented("takes u8, s8 and s32, not ", DataTypeName(type));
}

namespace {

absl::Status CheckSpatial(const PoolingDesc& desc, int d) {
  const int64_t in = desc.src.dim(d + 2), out = desc.dst.dim(d + 2);
  const int64_t kernel = desc.kernel[d], stride = desc.strides[d], left = desc.padding_left[d];
  constexpr int64_t kLargest = int64_t{1} << 30;
  if (in < 1) {
    return InvalidArgument("spatial dimension ", d, " of src is empty");
  }
  if (kernel < 1 || stride < 1 || left < 0 || desc.padding_right[d] < 0 || left >= kernel ||
      std::max({kernel, stride, desc.padding_right[d]}) > kLargest) {
    return InvalidArgument("spatial dimension ", d, ": kernel ", kernel, ", stride ", stride,
                           ", padding ", left, " and ", desc.padding_right[d],
                           " (1 <= kernel and stride <= 2^30, 0 <= padding on the left < kernel)");
  }
  // No sum below overflows: a tensor's size is below 2^62.
  const int64_t allowed = (in + left + desc.padding_right[d] - kernel) / stride + 1;
  const bool room = in + left + desc.padding_right[d] >= kernel;
  const std::optional<int64_t> last = CheckedMul(out - 1, stride);  // where the last window starts
  const bool rounded_up = last && *last - left < in;
  if (out < 1 || !rounded_up || (room ? out < allowed || out > allowed + 1 : out != 1)) {
    return InvalidArgument("spatial dimension ", d, ": dst has ", out, ", src of ", in,
                           " with kernel ", kernel, ", stride ", stride, ", padding ", left,
                           " and ", desc.padding_right[d], " gives ", room ? allowed : 0);
  }
  return absl::OkStatus();
}

absl::Status Validate(const PoolingDesc& desc, const Attributes&) {
  if (desc.prop_kind != PropKind::kForwardInference &&
      desc.prop_kind != PropKind::kForwardTraining) {
    return InvalidArgument("pooling runs forward only");
  }
  ABSL_RETURN_IF_ERROR(CheckSource("src", desc.src));
  ABSL_RETURN_IF_ERROR(CheckDestination("dst", desc.dst));
  const int spatial = desc.src.rank() - 2;
  if (spatial < 1 || spatial > 3 || desc.dst.rank() != desc.src.rank()) {
    return InvalidArgument("src ", DimsToString(desc.src.dims()), ", dst ",
                           DimsToString(desc.dst.dims()), ": pooling needs rank 3 to 5");
  }
  for (const Dims* values :
       {&desc.kernel, &desc.strides, &desc.padding_left, &desc.padding_right}) {
    if (values->size() != spatial) {
      return InvalidArgument("kernel, strides and paddings need ", spatial, " values");
    }
  }
  for (int d = 0; d < 2; ++d) {
    if (desc.src.dim(d) != desc.dst.dim(d)) return CheckSameDims("src", desc.src, "dst", desc.dst);
  }
  for (int d = 0; d < spatial; ++d) ABSL_RETURN_IF_ERROR(CheckSpatial(desc, d));
  return absl::OkStatus();
}

}  // namespace
}  // namespace pooling

std::vector<PoolingDesc> PoolingProbes(DataType type) {
  std::vector<PoolingDesc> descs;
  for (PoolingAlgorithm algorithm :
       {PoolingAlgorithm::kMax, PoolingAlgorithm::kAvgIncludePadding}) {
    for (absl::string_view tag : probes::kImageTags) {
      PoolingDesc desc;
      desc.algorithm = algorithm;
      desc.src = probes::Tagged({2, 32, 8, 8}, type, tag);
      desc.dst = probes::Tagged({2, 32, 4, 4}, type, tag);
      desc.kernel = desc.strides = {2, 2};
      desc.padding_left = desc.padding_right = {0, 0};
      descs.push_back(desc);
    }
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(
    Pooling, pooling,
    {{cpu::Isa::kAvx512},
     {{"f32", ResolveChannelRows, CreateChannelRows, {.algorithm = kChannelRows}},
      {"integer",
       ResolveChannelRows,
       CreateChannelRows,
       {.is_integer = true, .algorithm = kChannelRows}},
      {"maximum_of_bf16", ResolveBf16Maximum, CreateChannelRows, {.algorithm = kChannelRows}},
      {"plain", ResolvePlainRows, CreatePlainRows, {.algorithm = kPlainRows}}}},
    {{cpu::Isa::kAvx2},
     {{"f32", ResolveChannelRows, CreateChannelRows, {.algorithm = kChannelRows}},
      {"integer",
       ResolveChannelRows,
       CreateChannelRows,
       {.is_integer = true, .algorithm = kChannelRows}},
      {"plain", ResolvePlainRows, CreatePlainRows, {.algorithm = kPlainRows}}}});

}  // namespace tilewire
