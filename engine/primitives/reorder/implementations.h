// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows that table.cc lists, but those of channel_blocking.h, and the checks
// that rows share. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_REORDER_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_REORDER_IMPLEMENTATIONS_H_

#include "engine/kernels/attributes.h"
#include "engine/primitives/reorder/reorder.h"

namespace tilewire::reorder {

// Between types in one dense layout, whatever it is, with output scales along any dimensions and a
// sum, shared by avx512_dense and avx2_dense. In the order of memory the loops over dimensions and
// blocks that the scales vary along alternate with those that they do not vary along. The innermost
// such groups make a run, whose scale is one number (nchw, a scale for each channel) or a row of
// numbers that repeats (nhwc, nChw16c); a generated kernel converts the whole vectors of a run, and
// the elements that are left through vectors on the stack.
TILEWIRE_ROW(ReorderDesc, Dense);

// From a plain tensor to one whose innermost block holds channels of one dimension, the lanes, in
// which src is not dense: weights as models store them (oihw, goihw) to the blocks of convolutions
// (OIhw16i16o, Ohwi16o, Goihw16g) and inner products. The other dimensions, as far as src holds
// them dense, make up a run of elements; a kernel of channel_blocking_generator.h takes a tile of
// one register's lanes times as many elements, transposes it in registers and stores each row, the
// lanes of one element, at the place that a table names. Elements of four bytes that are moved as
// they are. The innermost block has the lanes of a register.
TILEWIRE_ROW(ReorderDesc, WeightsPacking);

// winograd_weights.cc's transform by generated code, for weights that src holds as oihw or in
// blocks of the vector's lanes: the same arithmetic in the same order, and so the same bits. A
// block of output channels and as many input channels are brought to
// [input channel][tap][output channel], oihw by a kernel of channel_blocking_generator.h; a second
// kernel transforms one input channel after the other.
TILEWIRE_ROW(ReorderDesc, GeneratedWinograd);

// To weights as planes of bf16, also of Winograd's layout: to the f32 layout that is split, in the
// scratchpad, by the best reorder, then the split of plane_split.h, group after group.
TILEWIRE_ROW(ReorderDesc, PlaneWeights);

// kUnimplemented for Winograd's layout and planes: no row reads them, and only the rows named after
// them write them.
absl::Status RequireBlocked(const ReorderDesc& desc);

// kUnimplemented unless the bytes of elements are copied as they are: one type, no scale, no
// post-op.
absl::Status RequirePlainCopy(const ReorderDesc& desc, const Attributes& attributes);

// kUnimplemented unless there are no post-ops, or only one sum.
absl::Status RequireSumAtMost(const ReorderDesc& desc, const Attributes& attributes);

// The best reorder from the request's src to `dst`, for a row that runs it first.
absl::StatusOr<std::shared_ptr<const Primitive>> CreateCopyInside(
    const Request<ReorderDesc>& request, const MemoryDesc& dst);

TILEWIRE_ROW(ReorderDesc, Bounded);
TILEWIRE_ROW(ReorderDesc, Compensated);
TILEWIRE_ROW(ReorderDesc, WinogradWeights);
TILEWIRE_ROW(ReorderDesc, BlockedCopy);
TILEWIRE_ROW(ReorderDesc, Reference);

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_IMPLEMENTATIONS_H_
