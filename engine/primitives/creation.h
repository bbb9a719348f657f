// SPDX-License-Identifier: Apache-2.0
//
// What the creation of most primitives checks and fills alike.
#ifndef ENGINE_PRIMITIVES_CREATION_H_
#define ENGINE_PRIMITIVES_CREATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/memory/key_bytes.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// kInvalidArgument  no layout (a dst may be `any`), or a dst whose elements overlap
absl::Status CheckSource(absl::string_view name, const MemoryDesc& desc);
absl::Status CheckDestination(absl::string_view name, const MemoryDesc& desc);

// kInvalidArgument  the two have other dims; the message shows both
absl::Status CheckSameDims(absl::string_view a_name, const MemoryDesc& a, absl::string_view b_name,
                           const MemoryDesc& b);

// kUnimplemented  a tensor that is there (no zero descriptor) has another type; the message names
// it
absl::Status RequireType(DataType type, absl::Span<const MemoryDesc* const> tensors);
template <typename... Tensors>
absl::Status RequireF32(const Tensors&... tensors) {
  return RequireType(DataType::kF32, {&tensors...});
}

// Of a convolution or inner product: u8 or s8 src, s8 weights, no, f32 or s32 bias, u8, s8, s32 or
// f32 dst. kUnimplemented  other types; the message names the first
absl::Status RequireIntegerTypes(const MemoryDesc& src, const MemoryDesc& weights,
                                 const MemoryDesc& bias, const MemoryDesc& dst);

// kInvalidArgument  a mask of dimensions that dst has not, another count than the mask asks for, a
// number that is not
//                   finite
absl::Status CheckOutputScales(absl::string_view name, const MemoryDesc& dst,
                               const OutputScales& scales);
// kInvalidArgument, and kUnimplemented  scales that vary along another dimension than the output
// channel
absl::Status CheckChannelScales(absl::string_view name, const MemoryDesc& dst,
                                const OutputScales& scales);

// kUnimplemented  post-ops or output scales; output scales; a pass that is not forward
absl::Status RequireNoPostOps(const Attributes& attributes);
absl::Status RequireNoOutputScales(const Attributes& attributes);
absl::Status RequireForward(PropKind prop_kind);

// The arguments of a primitive with one source, with many, and with weights (bias may be zero).
std::vector<ArgDesc> ArgsOf(const MemoryDesc& src, const MemoryDesc& dst);
std::vector<ArgDesc> ArgsOf(const std::vector<MemoryDesc>& srcs, const MemoryDesc& dst);
std::vector<ArgDesc> ArgsOf(const MemoryDesc& src, const MemoryDesc& weights,
                            const MemoryDesc& bias, const MemoryDesc& dst);

// Without scratchpad and code.
PrimitiveInfo BasicInfo(const ImplementationFacts& facts, PrimitiveKind kind,
                        std::vector<ArgDesc> args, const Attributes& attributes);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CREATION_H_
