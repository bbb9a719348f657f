// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probes.h"

#include <utility>

namespace tilewire {
namespace {

constexpr absl::string_view kImageTags[] = {"nChw16c", "nChw8c", "nchw", "nhwc"};

MemoryDesc Tagged(Dims dims, DataType type, absl::string_view tag) {
  return MemoryDesc::Create(std::move(dims), type, *ParseFormatTag(tag)).value();
}

MemoryDesc Any(Dims dims, DataType type) {
  return MemoryDesc::CreateAny(std::move(dims), type).value();
}

// What a convolution or inner product may write when it reads `type`.
std::vector<DataType> ResultTypes(DataType type) {
  if (IsByte(type)) return {DataType::kU8, DataType::kS8, DataType::kS32, DataType::kF32};
  return {type, DataType::kF32};
}

DataType WeightsType(DataType type) { return IsByte(type) ? DataType::kS8 : type; }

std::vector<OpDesc> Reorders(DataType type) {
  std::vector<OpDesc> probes;
  for (DataType to : {type, DataType::kF32, DataType::kS8}) {
    for (absl::string_view from_tag : kImageTags) {
      for (absl::string_view to_tag : kImageTags) {
        const Dims dims = {2, 32, 8, 8};
        probes.push_back(ReorderDesc{Tagged(dims, type, from_tag), Tagged(dims, to, to_tag)});
      }
    }
    if (to == DataType::kS8) {
      const MemoryDesc packed =
          Tagged({32, 32, 3, 3}, to, "OIhw4i16o4i").WithCompensation(1).value();
      probes.push_back(ReorderDesc{Tagged(packed.dims(), type, "oihw"), packed});
    }
    for (absl::string_view tag : {"OIhw16i16o", "OIhw8i8o"}) {
      const Dims dims = {32, 32, 3, 3};
      probes.push_back(ReorderDesc{Tagged(dims, type, "oihw"), Tagged(dims, to, tag)});
    }
    for (int lanes : {16, 8}) {
      const WinogradLayout winograd{.tile = 4, .lanes = lanes, .panel_blocks = 2};
      const Dims dims = {32, 32, 3, 3};
      probes.push_back(ReorderDesc{Tagged(dims, type, "oihw"),
                                   MemoryDesc::CreateWinograd(dims, winograd).value()});
    }
  }
  return probes;
}

std::vector<OpDesc> Shuffles(DataType type) {
  std::vector<OpDesc> probes;
  for (absl::string_view tag : kImageTags) {
    ShuffleDesc desc;
    desc.src = desc.dst = Tagged({2, 32, 8, 8}, type, tag);
    desc.group_size = 4;
    probes.push_back(desc);
  }
  return probes;
}

std::vector<OpDesc> Concats(DataType type) {
  std::vector<OpDesc> probes;
  for (absl::string_view tag : kImageTags) {
    for (int64_t channels : {32, 20}) {
      const MemoryDesc src = Tagged({2, channels, 8, 8}, type, tag);
      probes.push_back(ConcatDesc{1, {src, src}, Tagged({2, 2 * channels, 8, 8}, type, tag)});
    }
  }
  return probes;
}

std::vector<OpDesc> Sums(DataType type) {
  const MemoryDesc image = Tagged({2, 32, 8, 8}, type, "nchw");
  return {SumDesc{{1, 1}, {image, image}, image}};
}

OpDesc Convolution(DataType type, DataType to, Dims src, Dims weights) {
  ConvolutionDesc desc;
  const int64_t kernel = weights.back();
  const int64_t channels = weights.size() == 5 ? weights[0] * weights[1] : weights[0];
  desc.dst = Any({src[0], channels, src[2], src[3]}, to);
  desc.src = Any(std::move(src), type);
  desc.weights = Any(std::move(weights), WeightsType(type));
  desc.strides = {1, 1};
  desc.dilations = {0, 0};
  desc.padding_left = desc.padding_right = {kernel / 2, kernel / 2};
  return desc;
}

std::vector<OpDesc> Convolutions(DataType type) {
  std::vector<OpDesc> probes;
  for (DataType to : ResultTypes(type)) {
    probes.push_back(Convolution(type, to, {1, 32, 14, 14}, {32, 32, 3, 3}));
    probes.push_back(Convolution(type, to, {1, 256, 56, 56}, {256, 256, 3, 3}));
    OpDesc winograd = probes.back();
    std::get<ConvolutionDesc>(winograd).algorithm = ConvolutionAlgorithm::kWinograd;
    probes.push_back(winograd);
    probes.push_back(Convolution(type, to, {1, 32, 14, 14}, {32, 32, 1, 1}));
    probes.push_back(Convolution(type, to, {1, 3, 14, 14}, {32, 3, 3, 3}));
    probes.push_back(Convolution(type, to, {1, 32, 14, 14}, {2, 16, 16, 3, 3}));
    probes.push_back(Convolution(type, to, {1, 32, 14, 14}, {32, 1, 1, 3, 3}));
  }
  return probes;
}

std::vector<OpDesc> Eltwises(DataType type) {
  EltwiseDesc desc;
  desc.src = desc.dst = Tagged({2, 32, 8, 8}, type, "nchw");
  return {desc};
}

std::vector<OpDesc> Softmaxes(DataType type) {
  SoftmaxDesc desc;
  desc.src = desc.dst = Tagged({2, 32}, type, "nc");
  return {desc};
}

std::vector<OpDesc> Poolings(DataType type) {
  std::vector<OpDesc> probes;
  for (PoolingAlgorithm algorithm :
       {PoolingAlgorithm::kMax, PoolingAlgorithm::kAvgIncludePadding}) {
    for (absl::string_view tag : kImageTags) {
      PoolingDesc desc;
      desc.algorithm = algorithm;
      desc.src = Tagged({2, 32, 8, 8}, type, tag);
      desc.dst = Tagged({2, 32, 4, 4}, type, tag);
      desc.kernel = desc.strides = {2, 2};
      desc.padding_left = desc.padding_right = {0, 0};
      probes.push_back(desc);
    }
  }
  return probes;
}

std::vector<OpDesc> InnerProducts(DataType type) {
  std::vector<OpDesc> probes;
  for (DataType to : ResultTypes(type)) {
    InnerProductDesc desc;
    desc.src = Any({2, 64}, type);
    desc.weights = Any({32, 64}, WeightsType(type));
    desc.dst = Any({2, 32}, to);
    probes.push_back(desc);
  }
  return probes;
}

std::vector<OpDesc> Lrns(DataType type) {
  std::vector<OpDesc> probes;
  for (LrnAlgorithm algorithm : {LrnAlgorithm::kAcrossChannels, LrnAlgorithm::kWithinChannel}) {
    for (absl::string_view tag : kImageTags) {
      const MemoryDesc image = Tagged({2, 32, 8, 8}, type, tag);
      probes.push_back(LrnDesc{PropKind::kForwardInference, algorithm, image, image});
    }
  }
  return probes;
}

// An image and another of the same layout, for the primitives that take any layout alike.
template <typename Desc, typename Fill>
std::vector<OpDesc> Images(DataType type, Dims other, Fill fill) {
  std::vector<OpDesc> probes;
  for (absl::string_view tag : kImageTags) {
    Desc desc;
    fill(Tagged({2, 32, 8, 8}, type, tag), Tagged(other, type, tag), &desc);
    probes.push_back(desc);
  }
  return probes;
}

template <typename Desc>
void FromTo(const MemoryDesc& image, const MemoryDesc& other, Desc* desc) {
  desc->src = image;
  desc->dst = other;
}

std::vector<OpDesc> Binaries(DataType type) {
  return Images<BinaryDesc>(type, {2, 32, 1, 1},
                            [](const MemoryDesc& image, const MemoryDesc& other, BinaryDesc* desc) {
                              desc->src0 = desc->dst = image;
                              desc->src1 = other;
                            });
}

std::vector<OpDesc> LayerNormalizations(DataType type) {
  LayerNormalizationDesc desc;
  desc.src = desc.dst = Tagged({2, 32}, type, "nc");
  return {desc};
}

std::vector<OpDesc> Matmuls(DataType type) {
  std::vector<OpDesc> probes;
  for (DataType to : ResultTypes(type)) {
    probes.push_back(
        MatmulDesc{Any({8, 64}, type), Any({64, 48}, WeightsType(type)), {}, Any({8, 48}, to)});
  }
  return probes;
}

std::vector<OpDesc> Deconvolutions(DataType type) {
  DeconvolutionDesc desc;
  desc.src = Any({1, 32, 7, 7}, type);
  desc.weights = Any({16, 32, 2, 2}, type);
  desc.dst = Any({1, 16, 14, 14}, type);
  desc.strides = {2, 2};
  desc.dilations = desc.padding_left = desc.padding_right = {0, 0};
  return {desc};
}

std::vector<OpDesc> Selections(DataType type) {
  std::vector<OpDesc> probes;
  for (absl::string_view tag : kImageTags) {
    probes.push_back(SelectDesc{Tagged({2, 32, 8, 8}, type, tag),
                                Tagged({2, 10, 8, 9}, type, tag),
                                {{}, {{3, 1, 10}}, {}, {{0, 1, 8}, {-1, 1, 1}}}});
  }
  return probes;
}

std::vector<OpDesc> ChannelGathers(DataType type) {
  std::vector<OpDesc> probes;
  for (absl::string_view tag : kImageTags) {
    GatherChannelsDesc desc;
    desc.srcs = {Tagged({2, 20, 8, 8}, type, tag), Tagged({2, 12, 8, 8}, type, tag)};
    desc.dst = Tagged({2, 32, 8, 8}, type, tag);
    for (int64_t c = 0; c < 32; ++c) {
      const bool is_first = c % 2 == 0;
      desc.channels.push_back({is_first ? 0 : 1, is_first ? c / 2 : c / 2 % 12});
    }
    probes.push_back(desc);
  }
  return probes;
}

std::vector<OpDesc> Gathers(DataType type) {
  return {GatherDesc{0, Tagged({40, 32}, type, "nc"), Tagged({3, 5}, DataType::kF32, "nc"),
                     Any({3, 5, 32}, type)}};
}

std::vector<OpDesc> Quantizations(DataType type) {
  std::vector<OpDesc> probes;
  for (DataType to : {DataType::kU8, DataType::kF32}) {
    for (absl::string_view tag : kImageTags) {
      const Dims dims = {2, 32, 8, 8};
      probes.push_back(
          QuantizeDesc{Tagged(dims, type, tag), Tagged(dims, to, tag), 1, {0.5f}, {3}});
    }
  }
  return probes;
}

std::vector<OpDesc> IntegerSums(DataType type) {
  const MemoryDesc image = Tagged({2, 32, 8, 8}, type, "nhwc");
  return {IntegerSumDesc{{image, image}, image, {0.5f, 0.25f}, {3, 0}, 0.5f, 1}};
}

std::vector<OpDesc> Interpolations(DataType type) {
  std::vector<OpDesc> probes;
  for (absl::string_view tag : kImageTags) {
    probes.push_back(InterpolateDesc{Tagged({2, 32, 2, 8}, type, tag),
                                     Tagged({2, 32, 3, 8}, type, tag),
                                     2,
                                     2,
                                     {0, 0, 0, 1, 1, 1},
                                     {1, 0, 0.5f, 0.5f, 0, 1}});
  }
  return probes;
}

std::vector<OpDesc> MaxWindows(DataType type) {
  MaxWindowDesc desc;
  desc.result = MaxWindowResult::kIndex;
  desc.src = Tagged({2, 32, 8, 8}, type, "nchw");
  desc.dst = Tagged({2, 32, 4, 4}, type, "nchw");
  desc.kernel = desc.strides = {2, 2};
  desc.dilations = desc.padding_left = {0, 0};
  return {desc};
}

std::vector<OpDesc> TopKs(DataType type) {
  return {TopKDesc{Tagged({8, 100}, type, "nc"), Tagged({8, 5}, type, "nc"), 1}};
}

std::vector<OpDesc> ElementwiseFunctions(DataType type) {
  const MemoryDesc image = Tagged({2, 32, 8, 8}, type, "nchw");
  return {ElementwiseDesc{{jit::Elementwise::Function::kMod}, {image, image}, image}};
}

}  // namespace

std::vector<OpDesc> Probes(PrimitiveKind kind, DataType type) {
  switch (kind) {
    case PrimitiveKind::kReorder:
      return Reorders(type);
    case PrimitiveKind::kShuffle:
      return Shuffles(type);
    case PrimitiveKind::kConcat:
      return Concats(type);
    case PrimitiveKind::kSum:
      return Sums(type);
    case PrimitiveKind::kConvolution:
      return Convolutions(type);
    case PrimitiveKind::kEltwise:
      return Eltwises(type);
    case PrimitiveKind::kSoftmax:
      return Softmaxes(type);
    case PrimitiveKind::kPooling:
      return Poolings(type);
    case PrimitiveKind::kInnerProduct:
      return InnerProducts(type);
    case PrimitiveKind::kLrn:
      return Lrns(type);
    case PrimitiveKind::kBinary:
      return Binaries(type);
    case PrimitiveKind::kBatchNormalization:
      return Images<BatchNormalizationDesc>(type, {2, 32, 8, 8}, FromTo<BatchNormalizationDesc>);
    case PrimitiveKind::kResampling:
      return Images<ResamplingDesc>(type, {2, 32, 16, 16}, FromTo<ResamplingDesc>);
    case PrimitiveKind::kReduction:
      return Images<ReductionDesc>(type, {2, 32, 1, 1}, FromTo<ReductionDesc>);
    case PrimitiveKind::kLayerNormalization:
      return LayerNormalizations(type);
    case PrimitiveKind::kMatmul:
      return Matmuls(type);
    case PrimitiveKind::kDeconvolution:
      return Deconvolutions(type);
    case PrimitiveKind::kSelect:
      return Selections(type);
    case PrimitiveKind::kGatherChannels:
      return ChannelGathers(type);
    case PrimitiveKind::kGather:
      return Gathers(type);
    case PrimitiveKind::kQuantize:
      return Quantizations(type);
    case PrimitiveKind::kIntegerSum:
      return IntegerSums(type);
    case PrimitiveKind::kInterpolate:
      return Interpolations(type);
    case PrimitiveKind::kMaxWindow:
      return MaxWindows(type);
    case PrimitiveKind::kTopK:
      return TopKs(type);
    case PrimitiveKind::kElementwise:
      return ElementwiseFunctions(type);
  }
  return {};
}

std::vector<DataType> TypesOf(const ImplementationRow& row) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;  // nothing is executed
  std::vector<DataType> types;
  for (DataType type : {DataType::kF32, DataType::kBf16, DataType::kF16, DataType::kS32,
                        DataType::kS8, DataType::kU8}) {
    for (const OpDesc& probe : Probes(row.kind, type)) {
      if (!CreatePrimitive(probe, attributes, {.max_isa = row.isa, .only = row.name}).ok())
        continue;
      types.push_back(type);
      break;
    }
  }
  return types;
}

}  // namespace tilewire
