// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/pooled_destination.h"
#include "engine/primitives/creation.h"

namespace tilewire {
namespace convolution {
namespace {

constexpr ImplementationTraits RealTraits(Algorithm algorithm) {
  return {.takes_prelu = true, .algorithm = algorithm};
}

constexpr ImplementationTraits WinogradTraits(Algorithm algorithm) {
  return {.bits_depend_on_position = true,
          .takes_max_pooling = true,
          .takes_prelu = true,
          .algorithm = algorithm};
}

constexpr ImplementationTraits PlaneTraits(Precision precision) {
  return {.algorithm = kPlanes, .precision = precision};
}

// The row that it reorders for may be Winograd's.
constexpr ImplementationTraits PlainTraits() {
  return {.bits_depend_on_position = true, .takes_prelu = true, .algorithm = kPlain};
}

}  // namespace
}  // namespace convolution

absl::string_view AlgorithmName(ConvolutionAlgorithm algorithm) {
  constexpr absl::string_view kNames[] = {"auto", "direct", "winograd"};
  return kNames[static_cast<size_t>(algorithm)];
}

TILEWIRE_DEFINE_PRIMITIVE(
    Convolution, convolution,
    {{"convolution/avx512_vnni_u8s8_depthwise",
      cpu::Isa::kAvx512Vnni,
      {.is_integer = true, .algorithm = kDepthwise}},
     ResolveIntegerDepthwise,
     CreateIntegerDepthwise},
    {{"convolution/amx_u8s8_direct",
      cpu::Isa::kAmx,
      {.is_integer = true, .algorithm = kMatrixTiles}},
     ResolveInteger,
     CreateInteger},
    {{"convolution/avx512_vnni_u8s8_direct",
      cpu::Isa::kAvx512Vnni,
      {.is_integer = true, .algorithm = kDirect}},
     ResolveInteger,
     CreateInteger},
    {{"convolution/avx512_u8s8_depthwise",
      cpu::Isa::kAvx512,
      {.is_integer = true, .algorithm = kDepthwise}},
     ResolveIntegerDepthwise,
     CreateIntegerDepthwise},
    {{"convolution/avx512_u8s8_direct",
      cpu::Isa::kAvx512,
      {.is_integer = true, .algorithm = kDirect}},
     ResolveInteger,
     CreateInteger},
    {{"convolution/avx2_vnni_u8s8_depthwise",
      cpu::Isa::kAvx2Vnni,
      {.is_integer = true, .algorithm = kDepthwise}},
     ResolveIntegerDepthwise,
     CreateIntegerDepthwise},
    {{"convolution/avx2_vnni_u8s8_direct",
      cpu::Isa::kAvx2Vnni,
      {.is_integer = true, .algorithm = kDirect}},
     ResolveInteger,
     CreateInteger},
    {{"convolution/avx2_u8s8_depthwise",
      cpu::Isa::kAvx2,
      {.is_integer = true, .algorithm = kDepthwise}},
     ResolveIntegerDepthwise,
     CreateIntegerDepthwise},
    {{"convolution/avx2_u8s8_direct", cpu::Isa::kAvx2, {.is_integer = true, .algorithm = kDirect}},
     ResolveInteger,
     CreateInteger},
    {{"convolution/avx512_bf16_depthwise", cpu::Isa::kAvx512Bf16, RealTraits(kDepthwise)},
     ResolveDepthwise,
     CreateDepthwise},
    {{"convolution/avx512_bf16_grouped", cpu::Isa::kAvx512Bf16, RealTraits(kGrouped)},
     ResolveGrouped,
     CreateGrouped},
    {{"convolution/avx512_bf16_first_layer",
      cpu::Isa::kAvx512Bf16,
      {.takes_prelu = true, .algorithm = kFirstLayer, .precision = Precision::kBf16}},
     ResolveBf16FirstLayer,
     CreateBf16FirstLayer},
    {{"convolution/avx512_f32_depthwise_nchw", cpu::Isa::kAvx512, RealTraits(kDepthwiseNchw)},
     ResolveDepthwiseNchw,
     CreateDepthwiseNchw},
    {{"convolution/avx512_f32_depthwise", cpu::Isa::kAvx512, RealTraits(kDepthwise)},
     ResolveDepthwise,
     CreateDepthwise},
    {{"convolution/avx512_f32_first_layer", cpu::Isa::kAvx512, RealTraits(kFirstLayer)},
     ResolveFirstLayer,
     CreateFirstLayer},
    {{"convolution/avx512_f32_few_outputs", cpu::Isa::kAvx512, RealTraits(kFewOutputs)},
     ResolveFewOutputs,
     CreateFewOutputs},
    {{"convolution/avx512_f32_grouped", cpu::Isa::kAvx512, RealTraits(kGrouped)},
     ResolveGrouped,
     CreateGrouped},
    {{"convolution/amx_f32_split6_winograd_4x3", cpu::Isa::kAmx, WinogradTraits(kWinograd4x3)},
     ResolveWinogradByPlanes,
     CreateWinogradByPlanes},
    {{"convolution/amx_f32_split6_winograd_2x3", cpu::Isa::kAmx, WinogradTraits(kWinograd2x3)},
     ResolveWinogradByPlanes,
     CreateWinogradByPlanes},
    {{"convolution/amx_bf16_planes", cpu::Isa::kAmx, PlaneTraits(Precision::kBf16)},
     ResolvePlanes,
     CreatePlanes},
    {{"convolution/amx_f32_split3_planes", cpu::Isa::kAmx, PlaneTraits(Precision::kFast)},
     ResolvePlanes,
     CreatePlanes},
    {{"convolution/avx512_bf16_direct",
      cpu::Isa::kAvx512Bf16,
      {.takes_prelu = true, .algorithm = kDirect, .precision = Precision::kBf16}},
     ResolvePairs,
     CreatePairs},
    {{"convolution/amx_f32_split6_planes", cpu::Isa::kAmx, PlaneTraits(Precision::kExact)},
     ResolvePlanes,
     CreatePlanes},
    {{"convolution/amx_f32_plain", cpu::Isa::kAmx, PlainTraits()}, ResolvePlain, CreatePlain},
    {{"convolution/avx512_f32_winograd_4x3", cpu::Isa::kAvx512, WinogradTraits(kWinograd4x3)},
     ResolveWinograd,
     CreateWinograd},
    {{"convolution/avx512_f32_winograd_2x3", cpu::Isa::kAvx512, WinogradTraits(kWinograd2x3)},
     ResolveWinograd,
     CreateWinograd},
    {{"convolution/avx512_f32_plain", cpu::Isa::kAvx512, PlainTraits()}, ResolvePlain, CreatePlain},
    {{"convolution/avx512_f32_direct", cpu::Isa::kAvx512, RealTraits(kDirect)},
     ResolveDirect,
     CreateDirect},
    {{"convolution/avx2_f32_depthwise_nchw", cpu::Isa::kAvx2, RealTraits(kDepthwiseNchw)},
     ResolveDepthwiseNchw,
     CreateDepthwiseNchw},
    {{"convolution/avx2_f32_depthwise", cpu::Isa::kAvx2, RealTraits(kDepthwise)},
     ResolveDepthwise,
     CreateDepthwise},
    {{"convolution/avx2_f32_first_layer", cpu::Isa::kAvx2, RealTraits(kFirstLayer)},
     ResolveFirstLayer,
     CreateFirstLayer},
    {{"convolution/avx2_f32_few_outputs", cpu::Isa::kAvx2, RealTraits(kFewOutputs)},
     ResolveFewOutputs,
     CreateFewOutputs},
    {{"convolution/avx2_f32_grouped", cpu::Isa::kAvx2, RealTraits(kGrouped)},
     ResolveGrouped,
     CreateGrouped},
    {{"convolution/avx2_f32_winograd_4x3", cpu::Isa::kAvx2, WinogradTraits(kWinograd4x3)},
     ResolveWinograd,
     CreateWinograd},
    {{"convolution/avx2_f32_winograd_2x3", cpu::Isa::kAvx2, WinogradTraits(kWinograd2x3)},
     ResolveWinograd,
     CreateWinograd},
    {{"convolution/avx2_f32_plain", cpu::Isa::kAvx2, PlainTraits()}, ResolvePlain, CreatePlain},
    {{"convolution/avx2_f32_direct", cpu::Isa::kAvx2, RealTraits(kDirect)},
     ResolveDirect,
     CreateDirect},
    {{"convolution/reordered", cpu::Isa::kBaseline, {.takes_prelu = true}},
     ResolveReordered,
     CreateReordered,
     true},
    {{"convolution/reference",
      cpu::Isa::kBaseline,
      {.is_reference = true, .takes_max_pooling = true, .takes_prelu = true}},
     ResolveReference,
     CreateReference});

}  // namespace tilewire
