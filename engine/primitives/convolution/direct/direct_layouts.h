// SPDX-License-Identifier: Apache-2.0
//
// The layouts of the direct convolution: what `any` becomes, checks of the layouts that the caller
// chose, and descriptors as strides. Pure functions.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_LAYOUTS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_LAYOUTS_H_

#include "absl/status/statusor.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/integer/integer_driver.h"

namespace tilewire::convolution {

enum class WeightsKind { kDense, kDepthwise, kFirstLayer, kFewOutputs, kGrouped };

// `desc` with `any` replaced; kUnimplemented for a layout that the direct convolution does not read
// or write.
absl::StatusOr<ConvolutionDesc> ResolveLayouts(const ConvolutionDesc& desc, const VectorUnit& unit,
                                               WeightsKind weights);

// Which src and dst a row takes: channel blocks only; these or tensors of whole vectors (see
// HasWholeVectors()), or of any number of channels that are neighbours; a plain src, or any src,
// each with a dst of channel blocks or whole vectors; or a src of channel blocks with a plain dst
// whose rows have no gaps.
enum class Activations { kBlocks, kVectors, kNeighbours, kPlainSrc, kAnySrc, kPlainDst };

// The same, in place, for src, dst and bias of `desc` only. Tensors of bf16 have blocks of 32
// channels whatever `lanes` is.
absl::Status ResolveActivations(int lanes, Activations allowed, ConvolutionDesc* desc);

// Whether channels are cut into blocks of `lanes`, and nothing else is cut.
bool IsChannelBlocked(const MemoryDesc& desc, int lanes);

// Whether the tensor is plain and its channels are neighbours, as those of nhwc are.
bool HasNeighbours(const MemoryDesc& desc);

// Whether the tensor is plain and the pixels of a row are neighbours, as those of nchw are.
bool HasPlainRows(const MemoryDesc& desc);

// Whether the tensor is plain, its channels are neighbours and make up whole vectors of `lanes`, as
// those of nhwc often do: code for channel blocks then reads and writes it by other strides.
bool HasWholeVectors(const MemoryDesc& desc, int lanes);

// Whether the direct convolution reads src, blocked or plain, about as fast as blocks. The channels
// of an nchw pixel lie in as many pages, unless images are small, which takes up to twice as long.
// Pixels of nhwc that are multiples of a way of the first cache apart share one set of it.
bool IsReadAsFastAsBlocks(const ConvolutionDesc& desc);

// The strides of a plain or channel-blocked tensor whose groups have `group_channels` channels.
ActivationStrides StridesOf(const MemoryDesc& desc, int lanes, int64_t group_channels);

// The same in units of four bytes, two numbers of bf16; a block of those has 32 whatever `lanes`
// is.
ActivationStrides StridesInFloats(const MemoryDesc& desc, int lanes, int64_t group_channels);

inline bool IsBf16(const MemoryDesc& tensor) { return tensor.data_type() == DataType::kBf16; }

// The channels of a block of a tensor: 32 of bf16, else `lanes`.
int LanesOf(const MemoryDesc& tensor, int lanes);

// The same in bytes, of blocks of LanesOf() channels.
ByteStrides StridesOfBytes(const MemoryDesc& desc, int lanes, int64_t group_channels);

// The offset of a channel from element (0,...,0), in elements.
inline int64_t ChannelOffset(const ActivationStrides& strides, int lanes, int64_t channel) {
  return channel / lanes * strides.block + channel % lanes * strides.channel;
}

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_LAYOUTS_H_
