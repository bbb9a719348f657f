// SPDX-License-Identifier: Apache-2.0
//
// A concatenation needs no step where each source is written directly into its part of the result.
// For a single image, every part is one piece of memory. For several images, the steps that write
// and read a source are given the strides of the whole result (PlanBuilder::Restride). A source
// that cannot be moved there is copied. Only where no source can be moved is the concatenation a
// step of its own.
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/source_layouts.h"
#include "engine/memory/layout.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

using runtime::LayoutLike;

// Every element of both is at the same offset.
bool SameOrder(const MemoryDesc& a, const MemoryDesc& b) {
  return a.dims() == b.dims() && a.inner_blocks() == b.inner_blocks() &&
         a.offset0() == b.offset0() && runtime::SameStrides(a, b);
}

// Where a source is to be written.
struct Part {
  PartBegin begin;
  MemoryDesc desc;  // from there on
};

// The parts of `dst` for the sources; nullopt where some part would not consist of whole blocks.
std::optional<std::vector<Part>> PartsOf(const std::vector<Place>& sources, const MemoryDesc& dst,
                                         int axis) {
  std::vector<Part> parts;
  Dims offsets(dst.rank(), 0);
  for (const Place& source : sources) {
    const absl::StatusOr<MemoryDesc> view = dst.SubMemory(source.desc.dims(), offsets);
    if (!view.ok() || view->inner_blocks() != source.desc.inner_blocks()) return std::nullopt;
    const PartBegin begin = {.axis = axis, .index = offsets[axis]};
    absl::StatusOr<MemoryDesc> desc = view->WithStrides(dst.strides());
    if (!desc.ok() || BytesBefore(begin, dst, dst.strides()) % kPartAlignment != 0)
      return std::nullopt;
    parts.push_back({begin, *std::move(desc)});
    offsets[axis] += source.desc.dim(axis);
  }
  return parts;
}

// Nested and blocked as `layout`, with the strides of the largest concatenation of which the result
// will be a part, so that what it holds is moved only once.
absl::StatusOr<MemoryDesc> ResultDesc(const MemoryDesc& layout, int axis,
                                      const OperationContext& context) {
  const network::Network& network = context.network();
  ValueId largest = context.dst();
  for (const network::Operation& other : network.operations) {
    if (absl::c_linear_search(network.outputs, largest)) break;
    const auto* concat = std::get_if<network::Concat>(&other.params);
    if (concat != nullptr && concat->axis == axis && absl::c_linear_search(other.srcs, largest))
      largest = other.dst;
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.DstLike(layout));
  if (dst.dim(0) == 1) return dst;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc whole, LayoutLike(layout, context.value(largest).dims));
  return dst.WithStrides(whole.strides());
}

// The source where it is if that is nested and blocked as `layout`, otherwise a copy that is.
absl::StatusOr<Place> SourceLike(ValueId src, const MemoryDesc& layout, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, LayoutLike(layout, context.value(src).dims));
  if (!context.plan().IsUnplaced(src)) {
    ABSL_ASSIGN_OR_RETURN(const Place home, context.Home(src));
    if (LayoutPattern(home.desc) == LayoutPattern(desc)) return home;
  }
  return context.InLayout(src, desc);
}

// Makes room in the result for each source that can be moved there. Returns the buffers of these,
// -1 for the other sources.
absl::StatusOr<std::vector<int>> MoveSources(const std::vector<Place>& sources,
                                             const std::vector<Part>& parts, PlanBuilder& plan) {
  std::vector<int> buffers(sources.size(), -1);
  for (size_t i = 0; i < sources.size(); ++i) {
    const Place& source = sources[i];
    if (!plan.MayBePart(source) || absl::c_linear_search(buffers, source.buffer)) continue;
    if (!SameOrder(source.desc, parts[i].desc)) {
      const absl::Status restrided = plan.Restride(source, parts[i].desc.strides());
      if (absl::IsUnimplemented(restrided)) continue;
      ABSL_RETURN_IF_ERROR(restrided);
    }
    buffers[i] = source.buffer;
  }
  return buffers;
}

// The result, made of its sources where that saves at least one copy; nullopt where the
// concatenation takes a step.
absl::StatusOr<std::optional<Place>> TryParts(const std::vector<Place>& sources,
                                              const MemoryDesc& dst_desc, int axis,
                                              OperationContext& context) {
  const auto parts = PartsOf(sources, dst_desc, axis);
  if (!parts) return std::nullopt;
  ABSL_ASSIGN_OR_RETURN(std::vector<int> buffers, MoveSources(sources, *parts, context.plan()));
  if (absl::c_all_of(buffers, [](int buffer) { return buffer < 0; })) return std::nullopt;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (buffers[i] >= 0) continue;
    // Moving the others may have re-strided this source.
    ABSL_ASSIGN_OR_RETURN(const Place source, SourceLike(context.src(i), dst_desc, context));
    ABSL_ASSIGN_OR_RETURN(const Place copy, context.Copy(source, (*parts)[i].desc,
                                                         "copies a part of a concatenation"));
    buffers[i] = copy.buffer;
  }
  const Place dst = context.plan().NewPlace(dst_desc);
  for (size_t i = 0; i < buffers.size(); ++i)
    context.plan().MakePart(buffers[i], dst, (*parts)[i].begin);
  return dst;
}

}  // namespace

absl::Status LowerConcat(const network::Concat& concat, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(context));
  std::vector<Place> sources;
  for (ValueId src : context.srcs()) {
    ABSL_ASSIGN_OR_RETURN(sources.emplace_back(), SourceLike(src, layout, context));
  }
  ConcatDesc desc{.axis = concat.axis};
  desc.srcs = DescsOf(sources);
  context.ConsumeSources();
  ABSL_ASSIGN_OR_RETURN(desc.dst, ResultDesc(layout, concat.axis, context));
  ABSL_ASSIGN_OR_RETURN(const std::optional<Place> whole,
                        TryParts(sources, desc.dst, concat.axis, context));
  if (whole) return context.BindResult(*whole);
  return context.EmitMultiple(context.Create(desc), sources);
}

}  // namespace tilewire::lowering
