// SPDX-License-Identifier: Apache-2.0
//
// How exactly products of f32 tensors are computed. Sums are always taken in f32; what differs is
// which implementations may compute the products:
//
//   exact  an error against exact arithmetic like that of f32 multiplications and additions
//   fast   also by three products of bf16 numbers per f32 product: the relative error (L2) of a
//          layer is at most 1e-5, unless most of its products cancel each other
//   bf16   also by one product of numbers rounded to bf16, which keep 8 bits. A tensor that nothing
//          but such products reads is rounded where it is written and held as bf16; others are f32
//
// Each permits what those before it permit: it is a permission, and what is fastest on the machine
// is used. Where nothing faster is permitted, all give the same bits. Integer products are exact in
// all of them.
#ifndef ENGINE_BASE_PRECISION_H_
#define ENGINE_BASE_PRECISION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tilewire {

enum class Precision : uint8_t { kExact = 0, kFast, kBf16 };

// "exact", "fast", "bf16".
absl::string_view PrecisionName(Precision precision);

// The precision of a name above.
//   kInvalidArgument  any other name; the message lists these
absl::StatusOr<Precision> ParsePrecision(absl::string_view name);

}  // namespace tilewire

#endif  // ENGINE_BASE_PRECISION_H_
