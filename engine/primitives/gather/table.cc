// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather/gather.h"
#include "engine/primitives/gather/implementations.h"
#include "engine/primitives/gather/indices.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/threading/ranges.h"
#include "engine/threading/stop.h"

namespace tilewire {
namespace gather {
namespace {

// A tensor that is written may be `any`, and the gradients both.
absl::Status CheckTensorsOf(const GatherDesc& desc) {
  if (!IsBackward(desc.prop_kind)) {
    ABSL_RETURN_IF_ERROR(CheckSource("gather: src", desc.src));
    return CheckDestination("gather: dst", desc.dst);
  }
  if (desc.dst.IsZero()) return InvalidArgument("gather: dst, the layout of diff_dst, is missing");
  return CheckDestination("gather: src", desc.src);
}

absl::Status Validate(const GatherDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensorsOf(desc));
  ABSL_RETURN_IF_ERROR(CheckSource("gather: indices", desc.indices));
  ABSL_RETURN_IF_ERROR(CheckAxis("gather", desc.axis, desc.src));
  Dims dims(desc.src.dims().begin(), desc.src.dims().begin() + desc.axis);
  dims.insert(dims.end(), desc.indices.dims().begin(), desc.indices.dims().end());
  dims.insert(dims.end(), desc.src.dims().begin() + desc.axis + 1, desc.src.dims().end());
  if (dims == desc.dst.dims() && desc.src.data_type() == desc.dst.data_type()) {
    return absl::OkStatus();
  }
  return InvalidArgument("gather along axis ", desc.axis, ": ", desc.indices.ToString(), " of ",
                         desc.src.ToString(), " give ", DataTypeName(desc.src.data_type()), " ",
                         DimsToString(dims), ", not ", desc.dst.ToString());
}

int64_t PlaceOfInteger(int64_t index, int64_t size) {
  if (index < -size || index >= size) return kOutside;
  return index < 0 ? index + size : index;
}

int64_t PlaceOfNumber(float index, int64_t size) {
  const double end = static_cast<double>(size);  // f32 would round sizes above 2^24
  // NaN is outside, too, and so is a fraction between -1 and 0 of no elements.
  if (size == 0 || !(index > -end - 1 && index < end)) return kOutside;
  const int64_t whole = static_cast<int64_t>(index);
  return whole < 0 ? std::max(whole + size, kOutside) : whole;
}

// The first of the indices [begin, end), one after the other in memory, that is outside; `end` if
// none is.
int64_t FirstOutside(DataType type, const void* indices, int64_t begin, int64_t end, int64_t size) {
  const auto find = [&](const auto* all, const auto& place) {
    int64_t i = begin;
    while (i < end && place(all[i], size) != kOutside) ++i;
    return i;
  };
  if (type == DataType::kS64) return find(static_cast<const int64_t*>(indices), PlaceOfInteger);
  if (type == DataType::kS32) return find(static_cast<const int32_t*>(indices), PlaceOfInteger);
  return find(static_cast<const float*>(indices), PlaceOfNumber);
}

// As FirstOutside(), of positions in row-major order of indices that lie otherwise in memory.
int64_t FirstOutsideApart(const GatherDesc& desc, const void* indices, int64_t begin, int64_t end) {
  const MemoryDesc& among = desc.indices;
  const int64_t size = desc.src.dim(desc.axis);
  Dims at = IndexAt(among.dims(), begin);
  for (int64_t i = begin; i < end; ++i) {
    if (PlaceOfIndex(among.data_type(), indices, among.Offset(at), size) == kOutside) return i;
    NextIndex(among.dims(), &at);
  }
  return end;
}

// The least position below `count` that find(begin, end) returns, which returns `end` if it finds
// none; `count` where none is found, and perhaps once the run is stopped. A piece is left out only
// where one before it has found something, so that threads do not decide which is the least.
template <typename Find>
int64_t FirstFound(const threading::Team& team, int64_t count, const Find& find) {
  constexpr int64_t kIndicesAtOnce = 1 << 15;
  std::atomic<int64_t> first = count;
  threading::ParallelForRanges(team, count, kIndicesAtOnce, [&](int64_t begin, int64_t end) {
    if (begin >= first.load() || threading::Stopped()) return;
    const int64_t found = find(begin, end);
    if (found == end) return;
    int64_t least = first.load();
    while (found < least && !first.compare_exchange_weak(least, found)) {
    }
  });
  return first;
}

// As messages show it.
std::string IndexText(DataType type, const void* indices, int64_t i) {
  if (type == DataType::kS64) return absl::StrCat(static_cast<const int64_t*>(indices)[i]);
  if (type == DataType::kS32) return absl::StrCat(static_cast<const int32_t*>(indices)[i]);
  return absl::StrCat(static_cast<const float*>(indices)[i]);
}

}  // namespace

int64_t PlaceOfIndex(DataType type, const void* indices, int64_t i, int64_t size) {
  if (type == DataType::kS64) return PlaceOfInteger(static_cast<const int64_t*>(indices)[i], size);
  if (type == DataType::kS32) return PlaceOfInteger(static_cast<const int32_t*>(indices)[i], size);
  return PlaceOfNumber(static_cast<const float*>(indices)[i], size);
}

absl::Status RequireIndexType(const MemoryDesc& indices) {
  const DataType type = indices.data_type();
  if (type == DataType::kF32 || type == DataType::kS32 || type == DataType::kS64)
    return absl::OkStatus();
  return Unimplemented("takes indices of f32, s32 and s64 only, not ", DataTypeName(type));
}

absl::Status CheckIndices(const GatherDesc& desc, const void* indices,
                          const threading::Team& team) {
  const DataType type = desc.indices.data_type();
  const int64_t size = desc.src.dim(desc.axis), count = desc.indices.ElementCount();
  const bool in_order = RequireRowMajor(desc.indices).ok();
  const auto find = [&](int64_t begin, int64_t end) {
    return in_order ? FirstOutside(type, indices, begin, end, size)
                    : FirstOutsideApart(desc, indices, begin, end);
  };
  const int64_t first = FirstFound(team, count, find);
  if (first == count) return absl::OkStatus();
  const int64_t i = desc.indices.Offset(IndexAt(desc.indices.dims(), first));
  return InvalidArgument("index ", IndexText(type, indices, i), " is outside the ", size,
                         " elements along axis ", desc.axis);
}

PrimitiveInfo InfoOf(const Request<GatherDesc>& request) {
  const GatherDesc& desc = request.desc;
  return BasicInfo(request, {{kArgSrc, desc.src}, {kArgSrc1, desc.indices}, {kArgDst, desc.dst}});
}

}  // namespace gather

std::vector<GatherDesc> GatherProbes(DataType type) {
  const GatherDesc desc{0, probes::Tagged({40, 32}, type, "nc"),
                        probes::Tagged({3, 5}, DataType::kF32, "nc"),
                        probes::Any({3, 5, 32}, type)};
  GatherDesc backward = desc;
  backward.prop_kind = PropKind::kBackwardWeights;
  return {desc, backward};
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(Gather, gather, {PropKind::kBackwardWeights},
                                        {kAnyCpu,
                                         {{"slice_copy", ResolveSliceCopy, CreateSliceCopy},
                                          {"slice_sum",
                                           ResolveSliceSum,
                                           CreateSliceSum,
                                           {.propagations = {PropKind::kBackwardWeights}}}}});

}  // namespace tilewire
