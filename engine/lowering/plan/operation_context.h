// SPDX-License-Identifier: Apache-2.0
//
// The context in which one operation is lowered: the operation and its values, and the plan under
// construction (plan_builder.h), in which every step and copy bears the operation's name. Knows no
// operation in particular. Thread-compatible.
#ifndef ENGINE_LOWERING_PLAN_OPERATION_CONTEXT_H_
#define ENGINE_LOWERING_PLAN_OPERATION_CONTEXT_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/lowering/plan/plan_builder.h"
#include "engine/network/network.h"

namespace tilewire::lowering {

class OperationContext {
 public:
  OperationContext(const network::Network& network, const network::Operation& operation,
                   PlanBuilder* plan)
      : network_(network), operation_(operation), plan_(*plan) {}

  const network::Network& network() const { return network_; }
  const LoweringContext& settings() const { return plan_.context(); }
  PlanBuilder& plan() { return plan_; }
  // The precision that its products may have.
  Precision precision() const { return settings().PrecisionOf(operation_.name); }
  // The row that it is to take; empty: that of the estimates.
  absl::string_view row() const { return settings().RowOf(operation_.name); }

  const std::vector<ValueId>& srcs() const { return operation_.srcs; }
  ValueId src(size_t i = 0) const { return operation_.srcs[i]; }
  ValueId dst() const { return operation_.dst; }
  // Further result i.
  ValueId more_dst(size_t i) const { return operation_.more_dsts[i]; }
  const network::Value& value(ValueId id) const { return plan_.value(id); }
  const network::Value& src_value(size_t i = 0) const { return value(src(i)); }
  const network::Value& dst_value() const { return value(dst()); }
  // How many operations have yet to read a value; an output counts as one more.
  int remaining_uses(ValueId id) const { return plan_.RemainingUses(id); }

  // Descriptors of a value: in the layout that the primitive chooses, of the type in which the plan
  // keeps it, and in row-major order.
  absl::StatusOr<MemoryDesc> AnyDesc(ValueId id) const;
  absl::StatusOr<MemoryDesc> RowMajorDesc(ValueId id) const { return plan_.RowMajorDesc(id); }
  // A dense descriptor of the result, nested and blocked as `layout`.
  absl::StatusOr<MemoryDesc> DstLike(const MemoryDesc& layout) const;

  // Places of a value; see PlanBuilder.
  absl::StatusOr<Place> Home(ValueId id) { return plan_.Home(id); }
  absl::StatusOr<Place> DenseHome(ValueId id) { return plan_.DenseHome(id, operation_.name); }
  absl::StatusOr<Place> InLayout(ValueId id, const MemoryDesc& desc) {
    return plan_.InLayout(id, desc, operation_.name);
  }
  absl::StatusOr<Place> RowMajor(ValueId id);
  // The value where it is; one that no operation has read yet in the layout of `desc`.
  absl::StatusOr<Place> HomeOr(ValueId id, const MemoryDesc& desc);
  // A matrix where it is if it has strides; any other value as RowMajorOfRank() gives it.
  absl::StatusOr<Place> StridedMatrixOr(ValueId id, size_t rank);
  // The value in row-major order, with leading dimensions of 1 up to `rank`.
  //   kInternal  its rank is higher
  absl::StatusOr<Place> RowMajorOfRank(ValueId id, size_t rank);

  absl::StatusOr<std::shared_ptr<const Primitive>> Create(const OpDesc& desc,
                                                          const Attributes& attributes = {}) {
    return plan_.Create(desc, attributes);
  }

  // The primitive of a layer with known weights: of row(), if that is not empty.
  //   kInvalidArgument  the row does not exist or does not take the layer
  absl::StatusOr<std::shared_ptr<const Primitive>> CreateLayer(const OpDesc& desc,
                                                               const Attributes& attributes);

  // Marks one use of each source as consumed.
  void ConsumeSources();
  // Appends a step that bears the operation's name.
  void Emit(std::shared_ptr<const Primitive> primitive, Bindings bindings,
            absl::string_view remark = "", const PostOps& fused = {});
  // Notes where the result is. The error of one that could not be computed is passed on.
  absl::Status BindResult(const absl::StatusOr<Place>& place);

  // The whole lowering of an operation that reads its first source from `src`: consumes that
  // source, appends the step and binds the result. `more` are the arguments beside src and dst.
  // These functions pass on the error of a primitive that could not be created.
  using Created = absl::StatusOr<std::shared_ptr<const Primitive>>;
  absl::Status EmitUnary(Created primitive, const Place& src, Bindings more = {});
  // The same for a primitive that works in place: it writes over its source if that is dead.
  absl::Status EmitUnaryInPlace(Created primitive, const Place& src, Bindings more = {});
  // The same for a primitive with the arguments kArgMultipleSrc + i. Consumes nothing.
  absl::Status EmitMultiple(Created primitive, const std::vector<Place>& sources);
  // The same for any other arguments, of all sources, which it consumes; the result is laid out as
  // `dst`.
  absl::Status EmitTo(const MemoryDesc& dst, Created primitive, Bindings sources);

  // The whole lowering of a gradient: consumes all sources, of which `sources` are the arguments,
  // appends the step and binds the result, the argument `gradient`.
  absl::Status EmitGradient(Created primitive, Bindings sources, int gradient = kArgDiffSrc);
  // The same for a primitive that works in place: it writes over diff_dst if that is dead.
  absl::Status EmitGradientInPlace(Created primitive, Bindings sources);

  // The place of diff_dst among the arguments, if the result `gradient` may be written over it.
  std::optional<Place> DeadGradient(const Primitive& primitive, const Bindings& sources,
                                    int gradient = kArgDiffSrc) const;

  // The same for a primitive that adds the gradient to what `before` holds.
  absl::Status EmitGradientOnto(const Place& before, std::shared_ptr<const Primitive> primitive,
                                Bindings sources, const PostOps& post_ops);

  // A copy of `from` in the layout of `desc`, in a new place that belongs to no value yet.
  absl::StatusOr<Place> Copy(const Place& from, const MemoryDesc& desc, absl::string_view remark);

 private:
  absl::Status EmitInto(const Place& dst, std::shared_ptr<const Primitive> primitive,
                        Bindings sources, int dst_arg = kArgDst);

  const network::Network& network_;
  const network::Operation& operation_;
  PlanBuilder& plan_;
};

// The arguments kArgMultipleSrc + i.
Bindings MultipleSources(const std::vector<Place>& sources);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_OPERATION_CONTEXT_H_
