// SPDX-License-Identifier: Apache-2.0
//
// A concatenation whose sources lie one behind the other in its result (the dimensions before the
// axis are 1: one image) needs no step: each source is written where its part of the result is. A
// source that cannot be moved there is copied. Channels that are gathered one by one from several
// tensors take one step.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/runtime/channel_step.h"
#include "engine/runtime/layouts.h"
#include "engine/runtime/operation_lowering.h"

namespace tilewire::runtime {
namespace {

using graph::Operation;
using Place = PlanBuilder::Place;

constexpr int64_t kPartAlignment = AlignedBuffer::kAlignment;

// Every element of both lies at the same place from the start of each (`offset0` aside).
bool SameOrder(const MemoryDesc& a, const MemoryDesc& b) {
  if (a.dims() != b.dims() || a.data_type() != b.data_type() ||
      a.inner_blocks() != b.inner_blocks() || a.padded_dims() != b.padded_dims()) {
    return false;
  }
  for (int d = 0; d < a.rank(); ++d) {
    if (a.padded_dims()[d] > a.BlockSize(d) && a.stride(d) != b.stride(d)) return false;
  }
  return a.IsDense() && b.IsDense();
}

// Where each source would begin, in bytes; nullopt where some would not be in one piece.
std::optional<std::vector<int64_t>> PartOffsets(const std::vector<Place>& sources,
                                                const MemoryDesc& dst, int axis) {
  std::vector<int64_t> starts;
  Dims offsets(dst.rank(), 0);
  for (const Place& source : sources) {
    const absl::StatusOr<MemoryDesc> view = dst.SubMemory(source.desc.dims(), offsets);
    if (!view.ok() || !SameOrder(*view, source.desc)) return std::nullopt;
    starts.push_back((view->offset0() - dst.offset0()) * SizeOf(dst.data_type()));
    if (starts.back() % kPartAlignment != 0) return std::nullopt;
    offsets[axis] += source.desc.dim(axis);
  }
  return starts;
}

}  // namespace

Bindings Lowering::ManySources(const std::vector<Place>& sources, int dst) {
  Bindings bindings;
  for (size_t i = 0; i < sources.size(); ++i) {
    bindings.push_back({kArgMultipleSrc + static_cast<int>(i), sources[i].buffer});
  }
  bindings.push_back({kArgDst, dst});
  return bindings;
}

// The result, made of its sources where that saves a copy; nullopt where it takes a step.
absl::StatusOr<std::optional<Place>> Lowering::TryParts(const Operation& op,
                                                        const std::vector<Place>& sources,
                                                        const MemoryDesc& dst_desc, int axis) {
  const auto starts = PartOffsets(sources, dst_desc, axis);
  bool any = false;
  for (const Place& source : sources) any = any || builder_.MayBePart(source);
  if (!starts || !any) return std::nullopt;
  std::vector<int> parts;
  for (const Place& source : sources) {
    parts.push_back(source.buffer);
    const bool taken = std::count(parts.begin(), parts.end(), source.buffer) > 1;
    if (!taken && builder_.MayBePart(source)) continue;
    ABSL_ASSIGN_OR_RETURN(auto copy, builder_.Create(ReorderDesc{source.desc, source.desc}));
    parts.back() = builder_.NewPlace(source.desc).buffer;
    builder_.Emit(op.name, std::move(copy), {{kArgSrc, source.buffer}, {kArgDst, parts.back()}},
                  "copies a part of a concatenation");
  }
  const Place dst = builder_.NewPlace(dst_desc);
  for (size_t i = 0; i < parts.size(); ++i) builder_.MakePart(parts[i], dst.buffer, (*starts)[i]);
  return dst;
}

absl::Status Lowering::Lower(const Operation& op, const graph::Concat& concat) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(op));
  ABSL_ASSIGN_OR_RETURN(const std::vector<Place> sources, SourcesInLayout(op, layout));
  ConcatDesc desc{.axis = concat.axis};
  for (const Place& source : sources) desc.srcs.push_back(source.desc);
  ABSL_ASSIGN_OR_RETURN(desc.dst, LayoutLike(layout, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(const std::optional<Place> whole,
                        TryParts(op, sources, desc.dst, concat.axis));
  if (whole) {
    builder_.Bind(op.dst, *whole);
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc));
  const Place dst = builder_.NewPlace(primitive->Desc(kArgDst));
  builder_.Emit(op.name, std::move(primitive), ManySources(sources, dst.buffer));
  builder_.Bind(op.dst, dst);
  return absl::OkStatus();
}

absl::Status Lowering::Lower(const Operation& op, const graph::GatherChannels& gather) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(op));
  ABSL_ASSIGN_OR_RETURN(const std::vector<Place> sources, SourcesInLayout(op, layout));
  std::vector<MemoryDesc> descs;
  for (const Place& source : sources) descs.push_back(source.desc);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, LayoutLike(layout, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(auto step,
                        CreateChannelStep(gather, descs, desc, builder_.context().options.max_isa));
  const Place dst = builder_.NewPlace(desc);
  builder_.Emit(op.name, std::move(step), ManySources(sources, dst.buffer));
  builder_.Bind(op.dst, dst);
  return absl::OkStatus();
}

}  // namespace tilewire::runtime
