// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan/operation_context.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

Bindings MultipleSources(const std::vector<Place>& sources) {
  Bindings bindings;
  for (size_t i = 0; i < sources.size(); ++i)
    bindings.push_back({kArgMultipleSrc + static_cast<int>(i), sources[i].buffer});
  return bindings;
}

absl::StatusOr<MemoryDesc> OperationContext::AnyDesc(ValueId id) const {
  return MemoryDesc::CreateAny(value(id).dims, plan_.StoredType(id));
}

absl::StatusOr<MemoryDesc> OperationContext::DstLike(const MemoryDesc& layout) const {
  return runtime::LayoutLike(layout, dst_value().dims);
}

absl::StatusOr<Place> OperationContext::RowMajor(ValueId id) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, RowMajorDesc(id));
  return InLayout(id, desc);
}

absl::StatusOr<Place> OperationContext::StridedMatrixOr(ValueId id, size_t rank) {
  if (rank != 2 || plan_.IsUnplaced(id)) return RowMajorOfRank(id, rank);
  ABSL_ASSIGN_OR_RETURN(Place home, Home(id));
  if (home.desc.IsPlain() && home.desc.offset0() == 0) return home;
  return RowMajorOfRank(id, rank);
}

absl::StatusOr<Place> OperationContext::RowMajorOfRank(ValueId id, size_t rank) {
  ABSL_ASSIGN_OR_RETURN(const Place place, RowMajor(id));
  const network::Value& given = value(id);
  if (given.dims.size() > rank) {
    return Internal("value '", given.name, "' ", DimsToString(given.dims), " as a tensor of rank ",
                    rank);
  }
  Dims dims(rank - given.dims.size(), 1);
  dims.insert(dims.end(), given.dims.begin(), given.dims.end());
  ABSL_ASSIGN_OR_RETURN(MemoryDesc raised,
                        runtime::PlainDesc(dims, given.type, /*channels_last=*/false));
  return Place{place.buffer, std::move(raised)};
}

absl::StatusOr<Place> OperationContext::HomeOr(ValueId id, const MemoryDesc& desc) {
  return plan_.IsUnplaced(id) ? InLayout(id, desc) : Home(id);
}

absl::Status OperationContext::BindResult(const absl::StatusOr<Place>& place) {
  if (place.ok()) plan_.Bind(operation_.dst, *place);
  return place.status();
}

absl::StatusOr<std::shared_ptr<const Primitive>> OperationContext::CreateLayer(
    const OpDesc& desc, const Attributes& attributes) {
  if (row().empty()) return Create(desc, attributes);
  auto primitive = plan_.Create(desc, attributes, row());
  if (primitive.ok() || absl::IsResourceExhausted(primitive.status())) return primitive;
  if (settings().tries_rows) return Create(desc, attributes);
  return InvalidArgument("the row '", row(),
                         "' that it is to take does not fit: ", primitive.status().message());
}

void OperationContext::ConsumeSources() {
  for (ValueId src : operation_.srcs) plan_.Consume(src);
}

void OperationContext::Emit(std::shared_ptr<const Primitive> primitive, Bindings bindings,
                            absl::string_view remark, const PostOps& fused) {
  plan_.Emit(operation_.name, std::move(primitive), std::move(bindings), remark, fused);
}

absl::Status OperationContext::EmitInto(const Place& dst,
                                        std::shared_ptr<const Primitive> primitive,
                                        Bindings sources, int dst_arg) {
  sources.push_back({dst_arg, dst.buffer});
  Emit(std::move(primitive), std::move(sources));
  return BindResult(dst);
}

absl::Status OperationContext::EmitUnary(Created primitive, const Place& src, Bindings more) {
  ABSL_RETURN_IF_ERROR(primitive.status());
  plan_.Consume(operation_.srcs[0]);
  more.push_back({kArgSrc, src.buffer});
  const Place dst = plan_.NewPlace((*primitive)->Desc(kArgDst));
  return EmitInto(dst, *std::move(primitive), std::move(more));
}

absl::Status OperationContext::EmitUnaryInPlace(Created primitive, const Place& src,
                                                Bindings more) {
  ABSL_RETURN_IF_ERROR(primitive.status());
  plan_.Consume(operation_.srcs[0]);
  more.push_back({kArgSrc, src.buffer});
  const MemoryDesc& desc = (*primitive)->Desc(kArgDst);
  const bool in_place = plan_.MayOverwrite(src) && runtime::SameMemory(src.desc, desc);
  const Place dst = in_place ? Place{src.buffer, desc} : plan_.NewPlace(desc);
  return EmitInto(dst, *std::move(primitive), std::move(more));
}

absl::Status OperationContext::EmitMultiple(Created primitive, const std::vector<Place>& sources) {
  ABSL_RETURN_IF_ERROR(primitive.status());
  const Place dst = plan_.NewPlace((*primitive)->Desc(kArgDst));
  return EmitInto(dst, *std::move(primitive), MultipleSources(sources));
}

absl::Status OperationContext::EmitTo(const MemoryDesc& dst, Created primitive, Bindings sources) {
  ABSL_RETURN_IF_ERROR(primitive.status());
  ConsumeSources();
  return EmitInto(plan_.NewPlace(dst), *std::move(primitive), std::move(sources));
}

absl::Status OperationContext::EmitGradient(Created primitive, Bindings sources, int gradient) {
  ABSL_RETURN_IF_ERROR(primitive.status());
  ConsumeSources();
  const Place dst = plan_.NewPlace((*primitive)->Desc(gradient));
  return EmitInto(dst, *std::move(primitive), std::move(sources), gradient);
}

std::optional<Place> OperationContext::DeadGradient(const Primitive& primitive,
                                                    const Bindings& sources, int gradient) const {
  const MemoryDesc& desc = primitive.Desc(kArgDiffDst);
  const auto dy =
      absl::c_find_if(sources, [](const Binding& source) { return source.arg == kArgDiffDst; });
  const bool stands_alone = absl::c_none_of(sources, [&](const Binding& source) {
    return source.arg != kArgDiffDst && plan_.MayOverlap(source.buffer, dy->buffer);
  });
  const Place place = {dy->buffer, desc};
  const bool fits = runtime::SameMemory(desc, primitive.Desc(gradient));
  if (!fits || !stands_alone || !plan_.MayOverwrite(place)) return std::nullopt;
  return place;
}

absl::Status OperationContext::EmitGradientInPlace(Created primitive, Bindings sources) {
  ABSL_RETURN_IF_ERROR(primitive.status());
  ConsumeSources();
  const std::optional<Place> dead = DeadGradient(**primitive, sources);
  const Place dst = dead ? *dead : plan_.NewPlace((*primitive)->Desc(kArgDiffSrc));
  return EmitInto(dst, *std::move(primitive), std::move(sources), kArgDiffSrc);
}

absl::Status OperationContext::EmitGradientOnto(const Place& before,
                                                std::shared_ptr<const Primitive> primitive,
                                                Bindings sources, const PostOps& post_ops) {
  ConsumeSources();
  sources.push_back({kArgDiffSrc, before.buffer});
  Emit(std::move(primitive), std::move(sources), "adds to the gradients before it", post_ops);
  plan_.NoteAdded(dst());
  return BindResult(before);
}

absl::StatusOr<Place> OperationContext::Copy(const Place& from, const MemoryDesc& desc,
                                             absl::string_view remark) {
  ABSL_ASSIGN_OR_RETURN(auto reorder, Create(ReorderDesc{from.desc, desc}));
  const Place place = plan_.NewPlace(desc);
  Emit(std::move(reorder), {{kArgSrc, from.buffer}, {kArgDst, place.buffer}}, remark);
  return place;
}

}  // namespace tilewire::lowering
