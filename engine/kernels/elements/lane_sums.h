// SPDX-License-Identifier: Apache-2.0
//
// Emits the sums over the lanes of several vectors: as many vectors as a vector has lanes become
// one, whose lane i is the sum of all lanes of vector i. Every sum is taken in the same order.
//
//   16 vectors of 16 lanes   pairs of vectors are interleaved and halved in four rounds, so that it
//                            takes 45 instructions where folding each on its own takes 128
//
// Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_ELEMENTS_LANE_SUMS_H_
#define ENGINE_KERNELS_ELEMENTS_LANE_SUMS_H_

#include "engine/jit/vector_unit.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "xbyak/xbyak.h"

namespace tilewire {

// Vector 0 = the sums of vectors 0 to lanes - 1, all of which are overwritten like `spare`. For
// units of 8 and of 16 lanes.
void EmitLaneSums(Xbyak::CodeGenerator* generator, const VectorUnit& unit, const Xbyak::Xmm& spare);

// The end of vector 0 where its lanes are `pixels` neighbouring outputs of one channel, which may
// be fewer than the lanes: post-ops and a store that touches no other output. It has no bias.
EpilogueConfig EpilogueOfLaneSums(const VectorUnit& unit, int pixels, const PostOps& post_ops);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTS_LANE_SUMS_H_
