// SPDX-License-Identifier: Apache-2.0
//
// tilewire.v1's messages and the engine's descriptors, both ways. Pure functions.
#ifndef SERVICE_WIRE_PRIMITIVE_DECODER_H_
#define SERVICE_WIRE_PRIMITIVE_DECODER_H_

#include "absl/status/statusor.h"
#include "engine/primitive_engine.h"
#include "protos/tilewire.pb.h"

namespace tilewire::service {

// More sources of a concat or sum than this are refused.
constexpr int kMaxSources = 64;

//   kInvalidArgument  no dims, an unknown type or tag, sizes that overflow; see MemoryDesc
absl::StatusOr<MemoryDesc> DecodeMemoryDesc(const v1::MemoryDesc& message);
// A workspace as EncodeMemoryDesc() gives it.
//   kInvalidArgument  any other tensor
absl::StatusOr<MemoryDesc> DecodeWorkspace(const v1::MemoryDesc& message);
// By tag where one matches, else by pattern, else by strides.
v1::MemoryDesc EncodeMemoryDesc(const MemoryDesc& desc);

//   kInvalidArgument  no operation, a descriptor that is missing or malformed, a dimension of 0,
//                     unknown numbers of enumerations
// What the shapes mean together is checked by the engine.
absl::StatusOr<OpDesc> DecodeOperation(const v1::PrimitiveDesc& message);
//   kInvalidArgument  an unknown algorithm, a parameter that is not a number
absl::StatusOr<EltwiseOp> DecodeEltwiseOp(const v1::EltwiseOp& message);
//   kInvalidArgument  an empty or unknown post-op, a chain that is too long
// Always in user scratchpad mode.
absl::StatusOr<Attributes> DecodeAttributes(const v1::Attributes& message);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_PRIMITIVE_DECODER_H_
