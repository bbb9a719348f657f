// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_BATCH_NORMALIZATION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_BATCH_NORMALIZATION_IMPLEMENTATIONS_H_

#include <vector>

#include "engine/primitives/batch_normalization/batch_normalization.h"
#include "engine/primitives/batch_normalization/pixel_blocks.h"

namespace tilewire::batch_normalization {

// Batch normalization with given statistics by generated code (elementwise_kernel.h), shared by
// avx512_f32 and avx2_f32. Mean, variance, scale and shift become one line per channel,
// dst = a src + b, computed into the scratchpad at every execution, in src's layout of channels.
TILEWIRE_ROW(BatchNormalizationDesc, Rows);

// Training on blocks of channels: statistics of the batch, and dst by them, where all tensors have
// one layout, by generated code (pass_generator.h), for avx512_f32_batch and avx2_f32_batch.
TILEWIRE_ROW(BatchNormalizationDesc, Batch);

TILEWIRE_ROW(BatchNormalizationDesc, Reference);

// Backward likewise.
TILEWIRE_ROW(BatchNormalizationDesc, BatchBackward);

TILEWIRE_ROW(BatchNormalizationDesc, ReferenceBackward);

PrimitiveInfo InfoOf(const Request<BatchNormalizationDesc>& request);
PrimitiveInfo BackwardInfoOf(const Request<BatchNormalizationDesc>& request);

// Training writes the statistics that it finds.
inline bool WritesStatistics(const BatchNormalizationDesc& desc) {
  return desc.prop_kind == PropKind::kForwardTraining && !desc.use_global_stats;
}

inline bool WritesParameterGradients(const BatchNormalizationDesc& desc) {
  return desc.use_scale_shift && desc.prop_kind == PropKind::kBackward;
}

// The arguments that forward and backward share: statistics, as outputs where the propagation
// writes them, and scale and shift.
std::vector<ArgDesc> ParameterArgs(const BatchNormalizationDesc& desc);

inline bool HasAddend(const BatchNormalizationDesc& desc) { return !desc.addend.IsZero(); }

// Training saves what relu let through, as batch_normalization.h says.
inline bool SavesBits(const BatchNormalizationDesc& desc) {
  return desc.fuse_relu && desc.prop_kind != PropKind::kForwardInference;
}
MemoryDesc BitsOf(const BatchNormalizationDesc& desc);
constexpr int64_t kChannelsOfBits = 16, kBytesOfPixel = kChannelsOfBits / 8;
int64_t PixelsOf(const BatchNormalizationDesc& desc);  // of all images; 1 without elements
// The byte with the bit of channel c at the first pixel, c % 8; kBytesOfPixel on at the next.
int64_t ByteOfChannel(const BatchNormalizationDesc& desc, int64_t c);
inline int64_t ByteOfPiece(const BatchNormalizationDesc& desc, const PixelBlocks& blocks,
                           const PixelBlocks::Piece& piece) {
  return ByteOfChannel(desc, piece.block * blocks.lanes()) + piece.first_pixel * kBytesOfPixel;
}

// A tensor of more bytes, which no cache of a core holds, is written past the caches.
constexpr int64_t kLarge = int64_t{8} << 20;

// The chain with the relu of `fuse_relu` and its limit, which come first.
PostOps PostOpsOf(const BatchNormalizationDesc& desc, const Attributes& attributes);

// The pointers of an execution; scale and shift are null where there are none.
struct ChannelParameters {
  const float *mean, *variance, *scale, *shift;
};
ChannelParameters ParametersOf(const BatchNormalizationDesc& desc, const ExecuteArgs& args);

}  // namespace tilewire::batch_normalization

#endif  // ENGINE_PRIMITIVES_BATCH_NORMALIZATION_IMPLEMENTATIONS_H_
