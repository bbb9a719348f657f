// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/primitives/pooling/pooling.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/workspace.h"

namespace tilewire {

absl::string_view AlgorithmName(PoolingAlgorithm algorithm) {
  constexpr absl::string_view kNames[] = {"max", "avg_include_padding", "avg_exclude_padding"};
  return kNames[static_cast<size_t>(algorithm)];
}

namespace pooling {

PrimitiveInfo InfoOf(const Request<PoolingDesc>& request) {
  std::vector<ArgDesc> args = ArgsOf(request.desc.src, request.desc.dst);
  if (SavesPlaces(request.desc)) args.push_back({kArgWorkspace, PlacesOf(request.desc)});
  return BasicInfo(request, std::move(args));
}

PrimitiveInfo BackwardInfoOf(const Request<PoolingDesc>& request) {
  const PoolingDesc& desc = request.desc;
  std::vector<ArgDesc> args = {{kArgDiffDst, desc.dst}, {kArgDiffSrc, desc.src}};
  if (SavesPlaces(desc)) args.push_back({kArgWorkspace, desc.workspace});
  return BasicInfo(request, std::move(args));
}

DataType PlaceType(const PoolingDesc& desc) {
  const std::optional<int64_t> taps = CheckedProduct(desc.kernel);
  return taps && *taps <= 256 ? DataType::kU8 : DataType::kS32;
}

MemoryDesc PlacesOf(const PoolingDesc& desc) {
  std::string key;
  AppendField(desc.src.dims(), &key);
  AppendField(desc.dst, &key);
  for (const Dims* values : {&desc.kernel, &desc.strides, &desc.padding_left})
    AppendField(*values, &key);
  const DataType type = PlaceType(desc);
  const int64_t elements = desc.dst.SizeBytes() / SizeOf(desc.dst.data_type());
  return MakeWorkspace(type == DataType::kU8 ? "pooling_places_u8" : "pooling_places_s32", key,
                       elements * SizeOf(type));
}

absl::StatusOr<PoolingDesc> WithGradientLayouts(const PoolingDesc& desc) {
  PoolingDesc resolved = desc;
  if (resolved.src.IsAny() && resolved.dst.IsAny()) {
    ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPlain(resolved.dst));
  }
  if (resolved.dst.IsAny()) return WithDst(resolved, OrLayoutOf(resolved.dst, resolved.src));
  ABSL_ASSIGN_OR_RETURN(resolved.src, OrLayoutOf(resolved.src, resolved.dst));
  return resolved;
}

absl::Status RequireNoPlaces(const PoolingDesc& desc) {
  if (!SavesPlaces(desc)) return absl::OkStatus();
  return Unimplemented("saves no places of maxima, as training needs them");
}

absl::StatusOr<PoolingDesc> ResolveDefaults(const PoolingDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  if (SavesPlaces(desc)) {
    ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
    const std::optional<int64_t> taps = CheckedProduct(desc.kernel);
    if (!taps || *taps > std::numeric_limits<int32_t>::max())
      return Unimplemented("numbers the places of up to 2^31 taps");
  }
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

// A tensor that is written may be `any`.
absl::Status CheckTensorsOf(const PoolingDesc& desc) {
  if (!IsBackward(desc.prop_kind)) {
    ABSL_RETURN_IF_ERROR(CheckSource("src", desc.src));
    return CheckDestination("dst", desc.dst);
  }
  if (desc.dst.IsZero()) return InvalidArgument("pooling: dst, the layout of diff_dst, is missing");
  return CheckDestination("src", desc.src);
}

absl::Status CheckPlaces(const PoolingDesc& desc) {
  MemoryDesc saved;
  if (IsBackward(desc.prop_kind) && SavesPlaces(desc)) {
    ABSL_ASSIGN_OR_RETURN(const PoolingDesc resolved, WithGradientLayouts(desc));
    saved = PlacesOf(resolved);
  }
  return CheckWorkspace("pooling", desc.prop_kind, desc.workspace, saved,
                        absl::StrCat("dims, the layout of dst, kernel, strides and padding, here ",
                                     DimsToString(desc.kernel), ", ", DimsToString(desc.strides),
                                     " and ", DimsToString(desc.padding_left)));
}

absl::Status Validate(const PoolingDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensorsOf(desc));
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
  return CheckPlaces(desc);
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
  PoolingDesc training = descs.front(), backward = descs.back();
  training.prop_kind = PropKind::kForwardTraining;
  backward.prop_kind = PropKind::kBackwardData;
  PoolingDesc whole = backward;
  whole.src = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  whole.dst = probes::Tagged({2, 32, 1, 1}, type, "nchw");
  whole.kernel = whole.strides = {8, 8};
  PoolingDesc maximum = training;
  maximum.prop_kind = PropKind::kBackwardData;
  maximum.src = probes::Tagged({2, 32, 8, 8}, type, "nChw16c");
  maximum.dst = probes::Tagged({2, 32, 4, 4}, type, "nChw16c");
  maximum.workspace = pooling::PlacesOf(maximum);
  descs.insert(descs.end(), {training, backward, whole, maximum});
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(
    Pooling, pooling, {PropKind::kBackwardData},
    {{cpu::Isa::kAvx512},
     {{"f32", ResolveChannelRows, CreateChannelRows, {.algorithm = kChannelRows}},
      {"integer",
       ResolveChannelRows,
       CreateChannelRows,
       {.is_integer = true, .algorithm = kChannelRows}},
      {"maximum_of_bf16", ResolveBf16Maximum, CreateChannelRows, {.algorithm = kChannelRows}},
      {"plain", ResolvePlainRows, CreatePlainRows, {.algorithm = kPlainRows}},
      {"f32_maximum_places",
       ResolveMaximumPlacesRows,
       CreateChannelRows,
       {.algorithm = kChannelRows, .propagations = {PropKind::kForwardTraining}}},
      {"f32_maximum_backward",
       ResolveMaximumBackward,
       CreateMaximumBackward,
       {.propagations = {PropKind::kBackwardData}}}}},
    {{cpu::Isa::kAvx2},
     {{"f32", ResolveChannelRows, CreateChannelRows, {.algorithm = kChannelRows}},
      {"integer",
       ResolveChannelRows,
       CreateChannelRows,
       {.is_integer = true, .algorithm = kChannelRows}},
      {"plain", ResolvePlainRows, CreatePlainRows, {.algorithm = kPlainRows}},
      {"f32_maximum_places",
       ResolveMaximumPlacesRows,
       CreateChannelRows,
       {.algorithm = kChannelRows, .propagations = {PropKind::kForwardTraining}}}}},
    {kAnyCpu,
     {{"maximum_places",
       ResolveMaximumPlaces,
       CreateMaximumPlaces,
       {.propagations = {PropKind::kForwardTraining}}},
      {"whole_average_backward",
       ResolveWholeAverageBackward,
       CreateWholeAverageBackward,
       {.propagations = {PropKind::kBackwardData}}},
      {"lanes_backward",
       ResolveLanesBackward,
       CreateLanesBackward,
       {.propagations = {PropKind::kBackwardData}}}}});

}  // namespace tilewire
