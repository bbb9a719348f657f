// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the small types (engine/memory/small_type.h), held in f32, u8 and s8.
#ifndef ENGINE_ONNX_OPS_ARITHMETIC_SMALL_NUMBERS_H_
#define ENGINE_ONNX_OPS_ARITHMETIC_SMALL_NUMBERS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/memory/small_type.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// Real numbers, computed ones or a constant in memory, rounded as NearestSmall() rounds them.
// kUnimplemented: to kF8E8M0.
absl::StatusOr<Operand> NearestSmallOf(NodeContext& context, const Operand& reals, SmallType type,
                                       bool saturates, absl::string_view suffix = "");

// Real numbers as integers in the range of the type: what lies outside becomes the bound. They are
// whole; computed ones, or a constant in memory.
absl::StatusOr<Operand> SmallIntegersOf(NodeContext& context, const Operand& whole, SmallType type,
                                        absl::string_view suffix = "");

// The lowest bits of whole numbers that f32 holds, or of computed integers of any type.
absl::StatusOr<Operand> LowestBitsOf(NodeContext& context, const Operand& whole, SmallType type);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_ARITHMETIC_SMALL_NUMBERS_H_
