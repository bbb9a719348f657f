// SPDX-License-Identifier: Apache-2.0
//
// Checks and bookkeeping shared by the Create functions.
#ifndef ENGINE_PRIMITIVES_CREATION_H_
#define ENGINE_PRIMITIVES_CREATION_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/memory/element_types.h"
#include "engine/memory/layout.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// kInvalidArgument  it has no layout (a dst may be `any`), or the elements of dst overlap
absl::Status CheckSource(absl::string_view name, const MemoryDesc& desc);
absl::Status CheckDestination(absl::string_view name, const MemoryDesc& desc);

// The same of a primitive's src and dst.
absl::Status CheckTensors(absl::string_view primitive, const MemoryDesc& src,
                          const MemoryDesc& dst);

// kInvalidArgument  the dims or the types differ; the tensor has no such axis; src has a rank below
//                   `least` or above `most`
absl::Status CheckSameShape(absl::string_view primitive, const MemoryDesc& src,
                            const MemoryDesc& dst);
absl::Status CheckAxis(absl::string_view primitive, int axis, const MemoryDesc& tensor);
absl::Status CheckRank(absl::string_view primitive, const MemoryDesc& src, int least, int most);

// kInvalidArgument  the dims differ; the message shows both
absl::Status CheckSameDims(absl::string_view a_name, const MemoryDesc& a, absl::string_view b_name,
                           const MemoryDesc& b);

// kInvalidArgument  always; the message shows the dims of a primitive with weights
template <typename Desc>
absl::Status ShapeMismatch(absl::string_view primitive, const Desc& desc, absl::string_view what) {
  return InvalidArgument(primitive, ": ", what, ": src ", DimsToString(desc.src.dims()),
                         ", weights ", DimsToString(desc.weights.dims()), ", bias ",
                         DimsToString(desc.bias.dims()), ", dst ", DimsToString(desc.dst.dims()));
}

// kUnimplemented  a tensor that is present (not the zero descriptor) has another type; the message
//                 names the type
absl::Status RequireType(DataType type, absl::Span<const MemoryDesc* const> tensors);
template <typename... Tensors>
absl::Status RequireF32(const Tensors&... tensors) {
  return RequireType(DataType::kF32, {&tensors...});
}

// For a convolution or inner product: src u8 or s8, weights s8, bias f32, s32 or none, dst u8, s8,
// s32 or f32.
//   kUnimplemented  other types; the message names the first
absl::Status RequireIntegerTypes(const MemoryDesc& src, const MemoryDesc& weights,
                                 const MemoryDesc& bias, const MemoryDesc& dst);

// kInvalidArgument  a mask of dimensions that dst does not have, another count than the mask asks
//                   for, a scale that is not finite
absl::Status CheckOutputScales(absl::string_view name, const MemoryDesc& dst,
                               const OutputScales& scales);
// kInvalidArgument  as above
// kUnimplemented    scales that vary along another dimension than the output channel
absl::Status CheckChannelScales(absl::string_view name, const MemoryDesc& dst,
                                const OutputScales& scales);

// kUnimplemented  post-ops or output scales; output scales; a propagation other than inference
absl::Status RequireNoPostOps(const Attributes& attributes);
absl::Status RequireNoOutputScales(const Attributes& attributes);
absl::Status RequireInference(PropKind prop_kind);

// The resolved descriptor (see implementation.h) when `dst`, one of the above, is all that may have
// been `any`; and when each of src, weights, bias and dst may, and becomes row-major.
template <typename Desc>
absl::StatusOr<Desc> WithDst(Desc desc, absl::StatusOr<MemoryDesc> dst) {
  ABSL_ASSIGN_OR_RETURN(desc.dst, std::move(dst));
  return desc;
}
template <typename Desc>
absl::StatusOr<Desc> WithPlainTensors(Desc desc) {
  for (MemoryDesc* tensor : {&desc.src, &desc.weights, &desc.bias, &desc.dst}) {
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  return desc;
}

// The same of weights that are to be `packed`, if they are not `any`.
//   kUnimplemented  they have another layout
template <typename Desc>
absl::StatusOr<Desc> WithWeights(Desc desc, const MemoryDesc& packed) {
  if (desc.weights.IsAny()) desc.weights = packed;
  if (desc.weights == packed) return desc;
  return Unimplemented("weights are not ", packed.ToString());
}

// Resolves a descriptor of f32 tensors, without post-ops, whose dst may be `any`.
template <typename Desc>
absl::StatusOr<Desc> ResolveF32(const Desc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.src));
}

// The arguments of a primitive with one source, with many, and with weights (bias may be zero).
std::vector<ArgDesc> ArgsOf(const MemoryDesc& src, const MemoryDesc& dst);
std::vector<ArgDesc> ArgsOf(const std::vector<MemoryDesc>& srcs, const MemoryDesc& dst);
std::vector<ArgDesc> ArgsOf(const MemoryDesc& src, const MemoryDesc& weights,
                            const MemoryDesc& bias, const MemoryDesc& dst);

// Without scratchpad and code. Where the propagation is backward, it decides what is an output.
PrimitiveInfo BasicInfo(const ImplementationFacts& facts, PrimitiveKind kind, PropKind prop_kind,
                        std::vector<ArgDesc> args, const Attributes& attributes);

// KindOfDesc<SumDesc>::kKind is PrimitiveKind::kSum.
template <typename Desc>
struct KindOfDesc;
#define TILEWIRE_PRIMITIVE(Name, name)                             \
  struct Name##Desc;                                               \
  template <>                                                      \
  struct KindOfDesc<Name##Desc> {                                  \
    static constexpr PrimitiveKind kKind = PrimitiveKind::k##Name; \
  };
#include "engine/primitives/primitive_list.inc"
#undef TILEWIRE_PRIMITIVE

template <typename Desc>
PrimitiveInfo BasicInfo(const Request<Desc>& request, std::vector<ArgDesc> args) {
  return BasicInfo(request.facts, KindOfDesc<Desc>::kKind, PropKindOf(request.desc),
                   std::move(args), request.attributes);
}

// BasicInfo() of a forward primitive whose arguments are srcs and dst, src0, src1 and dst, or src,
// dst and, where the descriptor has them, weights and bias. Others have an InfoOf() of their own.
template <typename Desc>
PrimitiveInfo InfoOf(const Request<Desc>& request) {
  const Desc& desc = request.desc;
  std::vector<ArgDesc> args;
  if constexpr (requires { desc.srcs; }) {
    args = ArgsOf(desc.srcs, desc.dst);
  } else if constexpr (requires { desc.src1; }) {
    args = {{kArgSrc, desc.src0}, {kArgSrc1, desc.src1}, {kArgDst, desc.dst}};
  } else if constexpr (requires { desc.bias; }) {
    args = ArgsOf(desc.src, desc.weights, desc.bias, desc.dst);
  } else {
    args = ArgsOf(desc.src, desc.dst);
  }
  if constexpr (requires { desc.range; }) {
    if (!desc.range.IsZero()) args.push_back({kArgQuantizationRange, desc.range});
  }
  if constexpr (requires { desc.weights_range; }) {
    if (!desc.weights_range.IsZero()) args.push_back({kArgWeightsRange, desc.weights_range});
  }
  return BasicInfo(request, std::move(args));
}

// `info` of a primitive that runs the code of these generators, or of what holds some.
template <typename... Holders>
PrimitiveInfo WithCode(PrimitiveInfo info, const Holders&... holders) {
  info.code_bytes += (static_cast<int64_t>(holders.code_bytes()) + ...);
  return info;
}

// A Copying<T>, where T has the size of the elements that are copied and `args` follow.
template <template <typename> class Copying, typename... Args>
std::unique_ptr<Primitive> MakeCopying(DataType type, Args&&... args) {
  return VisitBytes(type, [&](auto element) -> std::unique_ptr<Primitive> {
    return std::make_unique<Copying<decltype(element)>>(std::forward<Args>(args)...);
  });
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CREATION_H_
