// SPDX-License-Identifier: Apache-2.0
//
// Masks of dropout. Element e of image i, in row-major order, is
//
//   word e % 4 of Philox((e / 4, i, node, update), key) / 2^8 < ratio * 2^24 ? 0 : 1 / (1 - ratio)
//
// where the key is the seed. A mask depends on neither threads nor layouts, and that of an image
// not on how many others are in its batch. Pure; thread-safe.
#ifndef ENGINE_TRAINING_DROPOUT_H_
#define ENGINE_TRAINING_DROPOUT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/threading/arena.h"

namespace tilewire::training {

struct MaskSource {
  float ratio = 0;  // that is dropped; in [0, 1)
  uint64_t seed = 0;
  uint32_t node = 0;   // tells the masks of one update apart
  int64_t update = 0;  // from 0; counts modulo 2^32
  int64_t images = 1;  // at least 1; all have the same number of elements, up to 2^32
};

void FillMask(const MaskSource& source, absl::Span<float> mask, const threading::Team& team);

}  // namespace tilewire::training

#endif  // ENGINE_TRAINING_DROPOUT_H_
