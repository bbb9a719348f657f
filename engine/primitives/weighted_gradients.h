// SPDX-License-Identifier: Apache-2.0
//
// Gradients of primitives with weights: of src (backward_data) and of weights and bias
// (backward_weights). Their descriptors are the forward ones, with the gradients' layouts in the
// place of the tensors':
//
//   backward_data      dst is the layout of diff_dst, src that of diff_src; no bias
//   backward_weights   dst is the layout of diff_dst, weights and bias those of their gradients
//
// Post-ops: a sum of scale 1 adds to what the gradients hold, of the bias too; then, for
// backward_data, a mask. Pure functions; thread-safe.
#ifndef ENGINE_PRIMITIVES_WEIGHTED_GRADIENTS_H_
#define ENGINE_PRIMITIVES_WEIGHTED_GRADIENTS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/kernels/attributes.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/primitive.h"
#include "engine/threading/arena.h"

namespace tilewire {

inline constexpr PropKinds kWeightedGradients = {PropKind::kBackwardData,
                                                 PropKind::kBackwardWeights};
inline constexpr PropKinds kForwardAndWeightedGradients = {
    PropKind::kForwardTraining, PropKind::kForwardInference, PropKind::kBackwardData,
    PropKind::kBackwardWeights};

// The traits of the row "reference_backward".
inline constexpr ImplementationTraits kWeightedReference = {
    .is_reference = true, .takes_mask = true, .propagations = kWeightedGradients};

// The part of a validation that the two propagations add; OK for others. `outputs`
// are the gradients, whose elements must not overlap.
//   kInvalidArgument  a bias where there is none, gradients whose elements share an address
//   kUnimplemented    post-ops other than those above, output scales
absl::Status CheckWeightedGradients(absl::string_view primitive, PropKind prop_kind,
                                    const MemoryDesc& bias, const Attributes& attributes,
                                    absl::Span<const MemoryDesc* const> outputs);

template <typename Desc>
absl::Status CheckWeightedGradients(absl::string_view primitive, const Desc& desc,
                                    const Attributes& attributes) {
  const PropKind kind = desc.prop_kind;
  if (kind == PropKind::kBackwardWeights)
    return CheckWeightedGradients(primitive, kind, desc.bias, attributes,
                                  {&desc.weights, &desc.bias});
  return CheckWeightedGradients(primitive, kind, desc.bias, attributes, {&desc.src});
}

// Resolves a descriptor of f32 whose tensors may be `any`, and become row-major.
template <typename Desc>
absl::StatusOr<Desc> ResolvePlainF32(const Request<Desc>& request) {
  const Desc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  return WithPlainTensors(desc);
}

// Arguments and InfoOf() of primitives with weights that run backward.
std::vector<ArgDesc> GradientArgsOf(PropKind prop_kind, const MemoryDesc& src,
                                    const MemoryDesc& weights, const MemoryDesc& bias,
                                    const MemoryDesc& dst, const PostOps& post_ops);
template <typename Desc>
PrimitiveInfo GradientInfoOf(const Request<Desc>& request) {
  const Desc& desc = request.desc;
  return BasicInfo(request, GradientArgsOf(desc.prop_kind, desc.src, desc.weights, desc.bias,
                                           desc.dst, request.attributes.post_ops));
}

// The same of any propagation.
template <typename Desc>
PrimitiveInfo InfoOfPropagation(const Request<Desc>& request) {
  if constexpr (requires { request.desc.bias, request.desc.prop_kind; }) {
    if (IsBackward(request.desc.prop_kind)) return GradientInfoOf(request);
  }
  return InfoOf(request);
}

// Where a gradient of f32 goes: adds to what is there, and masks, as the post-ops say. A value.
class GradientEnd {
 public:
  explicit GradientEnd(const PostOps& post_ops);

  bool adds() const { return adds_; }
  // `mask`: the activation at the element, if the post-ops have a mask.
  float Apply(float gradient, float before, const float* mask) const {
    if (adds_) gradient += before;
    return masks_ && !(*mask > 0) ? alpha_ * gradient : gradient;
  }

 private:
  bool adds_ = false, masks_ = false;
  float alpha_ = 0;
};

// The mask as a pass of its own, for rows whose kernels have none: over diff_src, dense, whose
// post-ops are `post_ops` and whose activation lies in the same layout. Nothing where there is no
// mask.
void ApplyMask(const PostOps& post_ops, const MemoryDesc& diff_src, const float* activation,
               float* gradients, const threading::Team& team);

//   kUnimplemented  there is a mask, and the gradient has gaps between its elements
absl::Status RequireMaskable(const MemoryDesc& diff_src, const Attributes& attributes);

// The attributes of a forward operation that computes the gradient: a sum stays, a mask is applied
// after it.
Attributes WithoutMask(const Attributes& attributes);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_WEIGHTED_GRADIENTS_H_
