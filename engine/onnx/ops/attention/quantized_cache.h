// SPDX-License-Identifier: Apache-2.0
//
// Keys or values of earlier tokens that are held as integers, scale * integer each, of 8 bits (s8),
// or of 4 (two in a byte of u8, the first in the lower bits, plus 8). A network computes with the
// integers in f32, which holds them exactly. Source: ONNX Runtime's ContribOperators.md,
// GroupQueryAttention.
#ifndef ENGINE_ONNX_OPS_ATTENTION_QUANTIZED_CACHE_H_
#define ENGINE_ONNX_OPS_ATTENTION_QUANTIZED_CACHE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

struct CacheQuantization {
  int bits = 0;   // 0: real numbers, which all functions here leave as they are
  Operand scale;  // of one element, or [1, heads, 1, size]
};

// How the cache of input `past`, for heads of dims `heads`, is quantized: as the attribute `type`
// says, with the scales of input `scale`.
//   kInvalidArgument  scales that do not fit or are not above 0, scales without a type, a type
//                     without scales or past input
//   kUnimplemented    other types, and others than s8 of 8 and u8 of 4 bits
absl::StatusOr<CacheQuantization> ReadCacheQuantization(NodeContext& context,
                                                        absl::string_view type, int past, int scale,
                                                        const Dims& heads);

// Dims of heads as the cache has them.
Dims CachedDims(const CacheQuantization& cache, Dims heads);

// The integers of what the cache holds, and of real numbers: the nearest.
absl::StatusOr<Operand> CachedIntegers(NodeContext& context, const CacheQuantization& cache,
                                       const Operand& held, absl::string_view suffix);
absl::StatusOr<Operand> NearestIntegers(NodeContext& context, const CacheQuantization& cache,
                                        const Operand& numbers, absl::string_view suffix);

// The form in which the cache holds integers, and the real numbers that these stand for.
absl::StatusOr<Operand> HeldOf(NodeContext& context, const CacheQuantization& cache,
                               const Operand& integers, absl::string_view suffix);
absl::StatusOr<Operand> NumbersOf(NodeContext& context, const CacheQuantization& cache,
                                  const Operand& integers, absl::string_view suffix);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_ATTENTION_QUANTIZED_CACHE_H_
