// SPDX-License-Identifier: Apache-2.0
//
// A concatenation needs no step where each source is written where its part of the result is. What
// one image's source fills lies in one piece; of several images, the steps that make a source and
// those that read it are given the strides of the whole (PlanBuilder::Respace). A source that
// cannot be moved there is copied. Channels that are gathered one by one from several tensors take
// one step.
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_lowering.h"
#include "engine/primitives/layout.h"
#include "engine/runtime/channel_step.h"
#include "engine/runtime/layouts.h"

namespace tilewire::runtime {
namespace {

using graph::Operation;
using Place = PlanBuilder::Place;

constexpr int64_t kPartAlignment = AlignedBuffer::kAlignment;

// Every element of both lies at the same place.
bool SameOrder(const MemoryDesc& a, const MemoryDesc& b) {
  return a.dims() == b.dims() && a.inner_blocks() == b.inner_blocks() &&
         a.offset0() == b.offset0() && SameStrides(a, b);
}

// Where a source is to be written.
struct Part {
  int64_t begin = 0;  // in the whole, bytes
  MemoryDesc desc;    // from there on
};

// nullopt where some part would not consist of whole blocks.
std::optional<std::vector<Part>> PartsOf(const std::vector<Place>& sources, const MemoryDesc& dst,
                                         int axis) {
  std::vector<Part> parts;
  Dims offsets(dst.rank(), 0);
  for (const Place& source : sources) {
    const absl::StatusOr<MemoryDesc> view = dst.SubMemory(source.desc.dims(), offsets);
    if (!view.ok() || view->inner_blocks() != source.desc.inner_blocks()) return std::nullopt;
    const int64_t begin = (view->offset0() - dst.offset0()) * SizeOf(dst.data_type());
    absl::StatusOr<MemoryDesc> desc = view->WithStrides(dst.strides());
    if (!desc.ok() || begin % kPartAlignment != 0) return std::nullopt;
    parts.push_back({begin, *std::move(desc)});
    offsets[axis] += source.desc.dim(axis);
  }
  return parts;
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

// Nested and blocked as `layout`; with the strides of the largest concatenation of which the result
// will be a part, so that what lies in it moves once only.
absl::StatusOr<MemoryDesc> Lowering::ConcatResult(const Operation& op, const MemoryDesc& layout,
                                                  int axis) {
  ValueId largest = op.dst;
  for (const Operation& other : network_.operations) {
    if (absl::c_linear_search(network_.outputs, largest)) break;
    const auto* concat = std::get_if<graph::Concat>(&other.params);
    if (concat != nullptr && concat->axis == axis && absl::c_linear_search(other.srcs, largest))
      largest = other.dst;
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, LayoutLike(layout, builder_.value(op.dst).dims));
  if (dst.dim(0) == 1) return dst;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc whole, LayoutLike(layout, builder_.value(largest).dims));
  return dst.WithStrides(whole.strides());
}

// The source where it lies if that is nested and blocked as `layout` is, else there.
absl::StatusOr<Place> Lowering::ConcatSource(const Operation& op, ValueId src,
                                             const MemoryDesc& layout) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, LayoutLike(layout, builder_.value(src).dims));
  if (!builder_.IsUnplaced(src)) {
    ABSL_ASSIGN_OR_RETURN(const Place home, builder_.Home(src));
    if (LayoutPattern(home.desc) == LayoutPattern(desc)) return home;
  }
  return builder_.InLayout(src, desc, op.name);
}

// The result, made of its sources where that saves a copy; nullopt where it takes a step.
absl::StatusOr<std::optional<Place>> Lowering::TryParts(const Operation& op,
                                                        const std::vector<Place>& sources,
                                                        const MemoryDesc& dst_desc, int axis) {
  const auto parts = PartsOf(sources, dst_desc, axis);
  if (!parts) return std::nullopt;
  std::vector<int> buffers(sources.size(), -1);  // of the parts
  bool any = false;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Place& source = sources[i];
    const MemoryDesc& desc = (*parts)[i].desc;
    if (!builder_.MayBePart(source) || absl::c_linear_search(buffers, source.buffer)) continue;
    const absl::Status respaced =
        SameOrder(source.desc, desc) ? absl::OkStatus() : builder_.Respace(source, desc.strides());
    if (absl::IsUnimplemented(respaced)) continue;
    ABSL_RETURN_IF_ERROR(respaced);
    buffers[i] = source.buffer;
    any = true;
  }
  if (!any) return std::nullopt;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (buffers[i] >= 0) continue;
    const MemoryDesc& desc = (*parts)[i].desc;
    ABSL_ASSIGN_OR_RETURN(const Place source, ConcatSource(op, op.srcs[i], dst_desc));
    ABSL_ASSIGN_OR_RETURN(auto copy, builder_.Create(ReorderDesc{source.desc, desc}));
    buffers[i] = builder_.NewPlace(desc).buffer;
    builder_.Emit(op.name, std::move(copy), {{kArgSrc, source.buffer}, {kArgDst, buffers[i]}},
                  "copies a part of a concatenation");
  }
  const Place dst = builder_.NewPlace(dst_desc);
  for (size_t i = 0; i < buffers.size(); ++i)
    builder_.MakePart(buffers[i], dst.buffer, (*parts)[i].begin);
  return dst;
}

absl::Status Lowering::Lower(const Operation& op, const graph::Concat& concat) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(op));
  ConcatDesc desc{.axis = concat.axis};
  std::vector<Place> sources;
  for (ValueId src : op.srcs) {
    ABSL_ASSIGN_OR_RETURN(sources.emplace_back(), ConcatSource(op, src, layout));
    desc.srcs.push_back(sources.back().desc);
  }
  for (ValueId src : op.srcs) builder_.Consume(src);
  ABSL_ASSIGN_OR_RETURN(desc.dst, ConcatResult(op, layout, concat.axis));
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
