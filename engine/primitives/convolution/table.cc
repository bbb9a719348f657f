// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/pooled_destination.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire {
namespace convolution {
namespace {

constexpr ImplementationTraits RealTraits(Algorithm algorithm) {
  return {.takes_prelu = true, .algorithm = algorithm};
}

// Beside the direct rows of f32: weights that are larger, or packed otherwise, have to be worth a
// tenth of the time; and by planes, 24 or 10.7 bytes per number, another tenth.
constexpr float kHandicap = 1.1f, kHandicapOfPlanes = 1.21f;

constexpr ImplementationTraits WinogradTraits(Algorithm algorithm, float handicap = kHandicap) {
  return {.bits_depend_on_position = true,
          .takes_max_pooling = true,
          .takes_prelu = true,
          .algorithm = algorithm,
          .handicap = handicap};
}

constexpr ImplementationTraits PlaneTraits(Precision precision) {
  return {.algorithm = kPlanes, .precision = precision, .handicap = kHandicap};
}

// The row that it reorders for may be Winograd's.
constexpr ImplementationTraits PlainTraits() {
  return {.bits_depend_on_position = true, .takes_prelu = true, .algorithm = kPlain};
}

constexpr ImplementationTraits IntegerTraits(Algorithm algorithm) {
  return {.is_integer = true, .algorithm = algorithm};
}

constexpr RowKind<ConvolutionDesc> kIntegerDepthwise = {
    "u8s8_depthwise", ResolveIntegerDepthwise, CreateIntegerDepthwise, IntegerTraits(kDepthwise)};
constexpr RowKind<ConvolutionDesc> kIntegerDirect = {"u8s8_direct", ResolveInteger, CreateInteger,
                                                     IntegerTraits(kDirect)};

constexpr PropKinds kOfSrc = {PropKind::kBackwardData};
constexpr PropKinds kOfWeights = {PropKind::kBackwardWeights};

// The convolution inside may be Winograd's.
constexpr RowKind<ConvolutionDesc> kBackwardData = {
    "f32_backward_data",
    ResolveBackwardData,
    CreateBackwardData,
    {.bits_depend_on_position = true, .takes_mask = true, .propagations = kOfSrc}};

// f32 rows for shapes of their own, and for all shapes.
constexpr RowKinds<ConvolutionDesc> kSpecialF32 = {
    {"f32_depthwise", ResolveDepthwise, CreateDepthwise, RealTraits(kDepthwise)},
    {"f32_first_layer", ResolveFirstLayer, CreateFirstLayer, RealTraits(kFirstLayer)},
    {"f32_few_outputs", ResolveFewOutputs, CreateFewOutputs, RealTraits(kFewOutputs),
     CostFewOutputs},
    {"f32_grouped", ResolveGrouped, CreateGrouped, RealTraits(kGrouped), CostGrouped}};
constexpr RowKinds<ConvolutionDesc> kGeneralF32 = {
    {"f32_winograd_4x3", ResolveWinograd, CreateWinograd, WinogradTraits(kWinograd4x3),
     CostWinograd},
    {"f32_winograd_2x3", ResolveWinograd, CreateWinograd, WinogradTraits(kWinograd2x3),
     CostWinograd},
    {"f32_plain", ResolvePlain, CreatePlain, PlainTraits(), CostPlain},
    {"f32_direct", ResolveDirect, CreateDirect, RealTraits(kDirect), CostDirect}};

}  // namespace
}  // namespace convolution

absl::string_view AlgorithmName(ConvolutionAlgorithm algorithm) {
  constexpr absl::string_view kNames[] = {"auto", "direct", "winograd", "training"};
  return kNames[static_cast<size_t>(algorithm)];
}

namespace {

ConvolutionDesc ProbeOf(DataType type, DataType to, Dims src, Dims weights) {
  ConvolutionDesc desc;
  const int64_t kernel = weights.back();
  const int64_t channels = weights.size() == 5 ? weights[0] * weights[1] : weights[0];
  desc.dst = probes::Any({src[0], channels, src[2], src[3]}, to);
  desc.src = probes::Any(std::move(src), type);
  desc.weights = probes::Any(std::move(weights), probes::WeightsType(type));
  desc.strides = {1, 1};
  desc.dilations = {0, 0};
  desc.padding_left = desc.padding_right = {kernel / 2, kernel / 2};
  return desc;
}

}  // namespace

std::vector<ConvolutionDesc> ConvolutionProbes(DataType type) {
  std::vector<ConvolutionDesc> descs;
  for (DataType to : probes::ResultTypes(type)) {
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 32, 3, 3}));
    descs.push_back(ProbeOf(type, to, {1, 256, 56, 56}, {256, 256, 3, 3}));
    ConvolutionDesc winograd = descs.back();
    winograd.algorithm = ConvolutionAlgorithm::kWinograd;
    descs.push_back(winograd);
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 32, 1, 1}));
    descs.push_back(ProbeOf(type, to, {1, 64, 64, 64}, {1, 64, 3, 3}));
    descs.push_back(ProbeOf(type, to, {1, 3, 14, 14}, {32, 3, 7, 7}));
    descs.push_back(ProbeOf(type, to, {1, 3, 14, 14}, {32, 3, 3, 3}));
    descs.push_back(descs.back());
    descs.back().dst = probes::Any({1, 32, 7, 7}, to);
    descs.back().strides = {2, 2};
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {2, 16, 16, 3, 3}));
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {8, 4, 4, 3, 3}));
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 1, 1, 3, 3}));
    descs.push_back(descs.back());
    descs.back().src = probes::Tagged({1, 32, 14, 14}, type, "nchw");
    descs.back().dst = probes::Tagged({1, 32, 14, 14}, to, "nchw");
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 32, 3, 3}));
    descs.back().dst = probes::Tagged({1, 32, 14, 14}, to, "nchw");
    descs.push_back(ProbeOf(type, to, {1, 32, 14, 14}, {32, 32, 3, 3}));
    descs.back().weights = probes::Tagged({32, 32, 3, 3}, probes::WeightsType(type), "oihw");
  }
  descs.push_back(ProbeOf(type, type, {1, 3, 28, 28}, {32, 3, 3, 3}));
  descs.back().prop_kind = PropKind::kBackwardData;
  for (PropKind kind : {PropKind::kBackwardData, PropKind::kBackwardWeights}) {
    descs.push_back(ProbeOf(type, type, {1, 32, 14, 14}, {32, 32, 3, 3}));
    descs.back().prop_kind = kind;
    descs.push_back(ProbeOf(type, type, {1, 32, 14, 14}, {32, 1, 1, 3, 3}));
    descs.back().prop_kind = kind;
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE_OF_ROWS(
    Convolution, convolution, {{cpu::Isa::kAvx512Vnni}, {kIntegerDepthwise}},
    {{cpu::Isa::kAmx},
     {{"u8s8_direct", ResolveInteger, CreateInteger, IntegerTraits(kMatrixTiles)},
      {"u8s8_first_layer", ResolveIntegerFirstLayer, CreateIntegerFirstLayer,
       IntegerTraits(kFirstLayer)}}},
    {{cpu::Isa::kAvx512Vnni}, {kIntegerDirect}},
    {{cpu::Isa::kAvx512, cpu::Isa::kAvx2Vnni, cpu::Isa::kAvx2},
     {kIntegerDepthwise, kIntegerDirect}},
    {{cpu::Isa::kAmx},
     {{"bf16_first_layer",
       ResolveBf16TileFirstLayer,
       CreateBf16TileFirstLayer,
       {.algorithm = kFirstLayer, .precision = Precision::kBf16}}}},
    {{cpu::Isa::kAvx512Bf16},
     {{"depthwise", ResolveDepthwise, CreateDepthwise, RealTraits(kDepthwise)},
      {"grouped", ResolveGrouped, CreateGrouped, RealTraits(kGrouped)},
      {"first_layer",
       ResolveBf16FirstLayer,
       CreateBf16FirstLayer,
       {.takes_prelu = true, .algorithm = kFirstLayer, .precision = Precision::kBf16}}}},
    {{cpu::Isa::kAvx512}, kSpecialF32},
    {{cpu::Isa::kAmx},
     {{"f32_split6_winograd_4x3", ResolveWinogradByPlanes, CreateWinogradByPlanes,
       WinogradTraits(kWinograd4x3, kHandicapOfPlanes), CostWinogradByPlanes},
      {"f32_split6_winograd_2x3", ResolveWinogradByPlanes, CreateWinogradByPlanes,
       WinogradTraits(kWinograd2x3, kHandicapOfPlanes), CostWinogradByPlanes},
      {"bf16_planes", ResolvePlanes, CreatePlanes, PlaneTraits(Precision::kBf16), CostPlanes},
      {"f32_split3_planes", ResolvePlanes, CreatePlanes, PlaneTraits(Precision::kFast),
       CostPlanes}}},
    {{cpu::Isa::kAvx512Bf16},
     {{"direct",
       ResolvePairs,
       CreatePairs,
       {.takes_prelu = true,
        .algorithm = kDirect,
        .precision = Precision::kBf16,
        .handicap = kHandicap},
       CostPairs}}},
    {{cpu::Isa::kAmx},
     {{"f32_split6_planes", ResolvePlanes, CreatePlanes, PlaneTraits(Precision::kExact),
       CostPlanes},
      {"f32_plain", ResolvePlain, CreatePlain, PlainTraits(), CostPlain}}},
    {{cpu::Isa::kAvx512}, kGeneralF32}, {{cpu::Isa::kAvx2}, kSpecialF32},
    {{cpu::Isa::kAvx2}, kGeneralF32},
    {kAvx512AndAvx2,
     {{"f32_depthwise_backward_data",
       ResolveBackwardDataDepthwise,
       CreateBackwardDataDepthwise,
       {.takes_mask = true, .propagations = kOfSrc}}}},
    {{cpu::Isa::kAmx, cpu::Isa::kAvx512, cpu::Isa::kAvx2}, {kBackwardData}},
    {kAvx512AndAvx2,
     {{"f32_backward_data_few_outputs",
       ResolveBackwardDataFewOutputs,
       CreateBackwardDataFewOutputs,
       {.takes_mask = true, .propagations = kOfSrc}},
      {"f32_backward_data_by_phases",
       ResolveBackwardDataByPhases,
       CreateBackwardDataByPhases,
       {.takes_mask = true, .propagations = kOfSrc}},
      {"f32_depthwise_weights",
       ResolveBackwardWeightsDepthwise,
       CreateBackwardWeightsDepthwise,
       {.propagations = kOfWeights}},
      {"f32_backward_weights",
       ResolveBackwardWeights,
       CreateBackwardWeights,
       {.propagations = kOfWeights}}}},
    {kAnyCpu,
     {{"reordered",
       ResolveReordered,
       CreateReordered,
       {.runs_another = true,
        .takes_prelu = true,
        .takes_mask = true,
        .propagations = kForwardAndWeightedGradients}},
      {"reference",
       ResolveReference,
       CreateReference,
       {.is_reference = true, .takes_max_pooling = true, .takes_prelu = true}},
      {"reference_backward", ResolveReferenceBackward, CreateReferenceBackward,
       kWeightedReference}}});

}  // namespace tilewire
