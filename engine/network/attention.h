// SPDX-License-Identifier: Apache-2.0
//
// Attention's leading dimensions. Scores of any rank, as those of windows, heads and matrices
// [images, windows, heads, M, N], are batches of heads for the primitive: the first few leading
// dimensions are batches together, the others are heads. Pure functions; thread-safe.
#ifndef ENGINE_NETWORK_ATTENTION_H_
#define ENGINE_NETWORK_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/memory/dims.h"

namespace tilewire::network {

struct HeadFold {
  int64_t batches = 1, heads = 1;
  std::vector<Dims> masks;  // as AttentionDesc takes them: of 4 dimensions, batches taken modulo
};

// The fold of attention's sources (network.h) that suits all masks, whose dimensions stand below
// the last of the scores'. A mask's first size other than 1 may be any divisor, and is then taken
// modulo: a mask of the windows of an image serves the windows of all images. Prefers one dimension
// of heads. Returns nullopt if the sources do not fit each other, or no fold suits.
std::optional<HeadFold> FoldHeads(const std::vector<Dims>& srcs);

// Whether there is a fold of scores for this mask alone.
bool IsMaskOf(const Dims& scores, const Dims& mask);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_ATTENTION_H_
