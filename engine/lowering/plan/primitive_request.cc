// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan/primitive_request.h"

#include <algorithm>
#include <variant>

#include "engine/base/status_macros.h"

namespace tilewire::lowering {
namespace {

// A descriptor with every layout as the primitive resolved it, except those that change.
class ChangedLayouts {
 public:
  ChangedLayouts(const PrimitiveRequest& request, absl::Span<const ArgDesc> changed)
      : request_(request), changed_(changed) {}

  absl::StatusOr<OpDesc> operator()(ConvolutionDesc desc) const {
    if (IsBackward(desc.prop_kind)) return Unimplemented("gradients keep their layouts");
    if (request_.attributes.post_ops.HasMaxPooling())
      return Unimplemented("a pooled destination has no gaps");
    desc.src = Now(kArgSrc);
    desc.weights = Now(kArgWeights);
    desc.bias = Now(kArgBias);
    desc.dst = Now(kArgDst);
    return desc;
  }

  absl::StatusOr<OpDesc> operator()(PoolingDesc desc) const {
    if (desc.prop_kind != PropKind::kForwardInference)
      return Unimplemented("the places of maxima depend on the layout");
    desc.src = Now(kArgSrc);
    desc.dst = Now(kArgDst);
    return desc;
  }

  absl::StatusOr<OpDesc> operator()(ReorderDesc desc) const {
    desc.src = Now(kArgSrc);
    desc.dst = Now(kArgDst);
    return desc;
  }

  template <typename Desc>
  absl::StatusOr<OpDesc> operator()(const Desc&) const {
    return Unimplemented(request_.whole->name(), " cannot take other layouts");
  }

 private:
  const MemoryDesc& Now(int arg) const {
    const auto found = std::find_if(changed_.begin(), changed_.end(),
                                    [&](const ArgDesc& one) { return one.arg == arg; });
    return found != changed_.end() ? found->desc : request_.whole->Desc(arg);
  }

  const PrimitiveRequest& request_;
  const absl::Span<const ArgDesc> changed_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> RequestLike(const PrimitiveRequest& request,
                                                             const OpDesc& desc,
                                                             RequestPrimitive create) {
  const Primitive& whole = *request.whole;
  ABSL_ASSIGN_OR_RETURN(std::shared_ptr<const Primitive> like,
                        create(desc, request.attributes, /*only=*/""));
  if (like->name() == whole.name()) return like;
  return create(desc, request.attributes, whole.name());
}

absl::StatusOr<std::shared_ptr<const Primitive>> RequestAgain(const PrimitiveRequest& request,
                                                              absl::Span<const ArgDesc> changed,
                                                              RequestPrimitive create) {
  ABSL_ASSIGN_OR_RETURN(const OpDesc desc,
                        std::visit(ChangedLayouts(request, changed), request.desc));
  return RequestLike(request, desc, create);
}

}  // namespace tilewire::lowering
