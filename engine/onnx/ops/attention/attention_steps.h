// SPDX-License-Identifier: Apache-2.0
//
// The steps of an attention, softmax(scale * q k^T + masks) v, for ONNX's operator and for those of
// ONNX Runtime. Heads are [batch, heads, length, size].
#ifndef ENGINE_ONNX_OPS_ATTENTION_ATTENTION_STEPS_H_
#define ENGINE_ONNX_OPS_ATTENTION_ATTENTION_STEPS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// [batch, length, heads * size] as heads; of rank 4 the same.
//   kInvalidArgument  dims that `heads` do not divide
absl::StatusOr<Operand> HeadsOf(NodeContext& context, const Operand& src, int64_t heads,
                                absl::string_view suffix);

// Each head of keys or values as often as `heads` has it: of neighbours.
//   kInvalidArgument  `heads` is not a multiple of those of src
absl::StatusOr<Operand> RepeatedHeads(NodeContext& context, const Operand& src, int64_t heads,
                                      absl::string_view suffix);

// scale * q k^T, capped to (-softcap, softcap) if that is not 0.
absl::StatusOr<Operand> ScoresOf(NodeContext& context, const Operand& queries, const Operand& keys,
                                 float scale, float softcap);

// [rows, columns]: 0 where query `past + row` sees a key, -infinity elsewhere: it sees itself and
// what is before it, of that the last `window` keys if `window` > 0.
//   kUnimplemented  too many elements
absl::StatusOr<Operand> CausalMask(const NodeContext& context, int64_t rows, int64_t columns,
                                   int64_t past = 0, int64_t window = 0);

// Where `truth` holds 0, elsewhere `value`.
absl::StatusOr<Operand> MaskOf(NodeContext& context, const Operand& truth, float value,
                               absl::string_view suffix);

// Scores plus real numbers that are broadcast to them: [batch or 1, heads or 1, rows, columns].
//   kInvalidArgument  other dims
absl::StatusOr<Operand> WithBias(NodeContext& context, const Operand& scores, const Operand& bias);

// The keys or values of input `past`, if there is one, then `all`; also output `output`, where that
// is used.
//   kInvalidArgument  a past that is not of rank 4
absl::StatusOr<Operand> AfterPast(NodeContext& context, int past, int output, Operand all);

// softmax(scores)
absl::StatusOr<Operand> SharesOf(NodeContext& context, const Operand& scores);

// Output 0: shares v, of rank 3 if `together`.
absl::Status FinishAttention(NodeContext& context, const Operand& shares, const Operand& values,
                             bool together);

// The first `size` elements of each head turned: pairs (a, b), of each half or of neighbours,
// become (cos a - sin b, sin a + cos b). Angles are broadcast to src, whose last dimension counts
// elements.
absl::StatusOr<Operand> RotatedBy(NodeContext& context, const Operand& src, const Operand& cos,
                                  const Operand& sin, int64_t size, bool of_neighbours,
                                  absl::string_view suffix);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_ATTENTION_ATTENTION_STEPS_H_
