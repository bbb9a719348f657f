// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/direct_layouts.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/planes/bf16_rounding.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/requirements.h"

namespace tilewire::convolution {
namespace {

// "aBcd16b"
std::string ActivationPattern(int rank, int lanes) {
  std::string pattern(PlainPattern(rank));
  pattern[1] = 'B';
  return absl::StrCat(pattern, lanes, "b");
}

// "ABdce16a3b", of output channels of neighbouring groups that make up whole vectors; the channels
// of src stand between the rows of taps and the taps of a row.
std::string GroupedPattern(const MemoryDesc& weights, int lanes) {
  constexpr int kOutputs = 1, kInputs = 2;
  const int64_t outputs = weights.dim(kOutputs), groups = lanes / std::gcd<int64_t>(lanes, outputs);
  std::string pattern(PlainPattern(weights.rank()));
  std::rotate(pattern.begin() + kInputs, pattern.begin() + kInputs + 1, pattern.end() - 1);
  if (groups > 1) {
    pattern[0] = 'A';
    absl::StrAppend(&pattern, groups, "a");
  }
  if (outputs > 1) {
    pattern[kOutputs] = 'B';
    absl::StrAppend(&pattern, outputs, "b");
  }
  return pattern;
}

// "ABcd16b16a", with groups "aBCde16c16b", depthwise "Abcde16a", first layer "Acdb16a", few
// outputs "aBcd16b", with groups "abCde16c".
std::string WeightsPattern(const MemoryDesc& weights, bool grouped, int lanes, WeightsKind kind) {
  if (kind == WeightsKind::kGrouped) return GroupedPattern(weights, lanes);
  const int rank = weights.rank();
  std::string pattern(PlainPattern(rank));
  const int o = grouped ? 1 : 0;
  if (kind == WeightsKind::kDepthwise) {
    pattern[0] = 'A';
    return absl::StrCat(pattern, lanes, "a");
  }
  if (kind == WeightsKind::kFirstLayer) {
    return absl::StrCat("A", pattern.substr(2), "b", lanes, "a");
  }
  const char oc = pattern[o], ic = pattern[o + 1];
  pattern[o + 1] = absl::ascii_toupper(ic);
  if (kind == WeightsKind::kFewOutputs) return absl::StrCat(pattern, lanes, std::string(1, ic));
  pattern[o] = absl::ascii_toupper(oc);
  return absl::StrCat(pattern, lanes, std::string(1, ic), lanes, std::string(1, oc));
}

// Pixels of bf16 begin with a pair.
bool HasWholePairs(const MemoryDesc& tensor) {
  for (int d = 0; IsBf16(tensor) && d < tensor.rank(); ++d) {
    const bool is_channel = d == 1 && tensor.IsPlain();
    if (!is_channel && tensor.stride(d) % kPairNumbers != 0) return false;
  }
  return true;
}

bool TakesSrc(const MemoryDesc& src, int lanes, Activations allowed) {
  if (!src.IsPlain()) return allowed != Activations::kPlainSrc && IsChannelBlocked(src, lanes);
  if (allowed == Activations::kVectors) return HasWholeVectors(src, lanes);
  if (allowed == Activations::kNeighbours) return HasNeighbours(src);
  return allowed != Activations::kBlocks && allowed != Activations::kPlainDst;
}

bool TakesDst(const MemoryDesc& dst, int lanes, Activations allowed) {
  if (allowed == Activations::kPlainDst) return HasPlainRows(dst);
  if (IsChannelBlocked(dst, lanes)) return true;
  if (allowed == Activations::kNeighbours) return HasNeighbours(dst);
  return allowed != Activations::kBlocks && HasWholeVectors(dst, lanes);
}

}  // namespace

bool IsChannelBlocked(const MemoryDesc& desc, int lanes) {
  return desc.inner_blocks().size() == 1 && desc.inner_blocks()[0] == InnerBlock{1, lanes};
}

bool HasNeighbours(const MemoryDesc& desc) { return desc.IsPlain() && desc.stride(1) == 1; }

bool HasPlainRows(const MemoryDesc& desc) {
  const int width = desc.rank() - 1;
  return desc.IsPlain() && (desc.stride(width) == 1 || desc.dim(width) == 1);
}

bool HasWholeVectors(const MemoryDesc& desc, int lanes) {
  return HasNeighbours(desc) && desc.dim(1) % lanes == 0;
}

absl::Status ResolveActivations(int lanes, Activations allowed, ConvolutionDesc* desc) {
  const int rank = desc->src.rank();
  const std::string plain(PlainPattern(rank));
  const int src_block = LanesOf(desc->src, lanes), dst_block = LanesOf(desc->dst, lanes);
  const bool plain_src = allowed == Activations::kPlainSrc;
  const bool plain_dst = allowed == Activations::kPlainDst;
  ABSL_ASSIGN_OR_RETURN(
      desc->src, OrPattern(desc->src, plain_src ? plain : ActivationPattern(rank, src_block)));
  ABSL_ASSIGN_OR_RETURN(
      desc->dst, OrPattern(desc->dst, plain_dst ? plain : ActivationPattern(rank, dst_block)));
  ABSL_ASSIGN_OR_RETURN(desc->bias, OrPattern(desc->bias, "a"));
  if (!TakesSrc(desc->src, src_block, allowed) || !HasWholePairs(desc->src))
    return RefuseLayout("src", desc->src);
  if (!TakesDst(desc->dst, dst_block, allowed) || !HasWholePairs(desc->dst))
    return RefuseLayout("dst", desc->dst);
  const MemoryDesc& bias = desc->bias;
  if (bias.IsZero() || (bias.IsPlain() && (bias.stride(0) == 1 || bias.dim(0) == 1))) {
    return absl::OkStatus();
  }
  return RefuseLayout("bias", bias);
}

absl::StatusOr<ConvolutionDesc> ResolveLayouts(const ConvolutionDesc& desc, const VectorUnit& unit,
                                               WeightsKind weights) {
  const int lanes = unit.lanes();
  ConvolutionDesc resolved = desc;
  const bool grouped = desc.weights.rank() > desc.src.rank();
  ABSL_ASSIGN_OR_RETURN(
      const MemoryDesc packed,
      MemoryDesc::CreatePattern(desc.weights.dims(), desc.weights.data_type(),
                                WeightsPattern(desc.weights, grouped, lanes, weights)));
  if (desc.weights.IsAny()) resolved.weights = packed;
  if (!(resolved.weights == packed)) return RefuseLayout("weights", desc.weights);
  const Activations depthwise = unit.has_masks() ? Activations::kNeighbours : Activations::kVectors;
  const Activations allowed = weights == WeightsKind::kFirstLayer   ? Activations::kPlainSrc
                              : weights == WeightsKind::kFewOutputs ? Activations::kPlainDst
                              : weights == WeightsKind::kDepthwise  ? depthwise
                              : weights == WeightsKind::kGrouped    ? Activations::kVectors
                                                                    : Activations::kAnySrc;
  ABSL_RETURN_IF_ERROR(ResolveActivations(lanes, allowed, &resolved));
  return resolved;
}

int LanesOf(const MemoryDesc& tensor, int lanes) {
  return IsBf16(tensor) ? static_cast<int>(kBf16LineNumbers) : lanes;
}

ByteStrides StridesOfBytes(const MemoryDesc& desc, int lanes, int64_t group_channels) {
  const int64_t size = SizeOf(desc.data_type());
  const ActivationStrides strides = StridesOf(desc, LanesOf(desc, lanes), group_channels);
  ByteStrides bytes = {
      .image = strides.image * size, .group = strides.group * size, .block = strides.block * size};
  for (int d = 0; d < 3; ++d) bytes.spatial[d] = strides.spatial[d] * size;
  return bytes;
}

bool IsReadAsFastAsBlocks(const ConvolutionDesc& desc) {
  constexpr int64_t kWayBytes = 4096, kPageBytes = 4096;
  if (!desc.src.IsPlain()) return true;
  const Geometry geometry = GeometryOf(desc);
  if (!HasNeighbours(desc.src)) {
    return geometry.kernel == Spatial{1, 1, 1} &&
           desc.src.stride(1) <= kPageBytes / 2 / kFloatBytes;
  }
  const int64_t elements = kWayBytes / kFloatBytes;
  return desc.src.stride(desc.src.rank() - 1) % elements * geometry.stride[2] % elements != 0;
}

ActivationStrides StridesOf(const MemoryDesc& desc, int lanes, int64_t group_channels) {
  ActivationStrides strides;
  strides.image = desc.stride(0);
  strides.spatial = SpatialStrides(desc, 2);
  strides.channel = desc.IsPlain() ? desc.stride(1) : 1;
  strides.block = desc.IsPlain() ? lanes * desc.stride(1) : desc.stride(1);
  strides.group =
      desc.IsPlain() ? group_channels * desc.stride(1) : group_channels / lanes * desc.stride(1);
  return strides;
}

ActivationStrides StridesInFloats(const MemoryDesc& desc, int lanes, int64_t group_channels) {
  if (!IsBf16(desc)) return StridesOf(desc, lanes, group_channels);
  ActivationStrides strides = StridesOf(desc, static_cast<int>(kBf16LineNumbers), group_channels);
  strides.image /= kPairNumbers;
  strides.group /= kPairNumbers;
  strides.block /= kPairNumbers;
  for (int64_t& step : strides.spatial) step /= kPairNumbers;
  return strides;
}

}  // namespace tilewire::convolution
