// SPDX-License-Identifier: Apache-2.0
//
// Networks whose channels come in groups, or lie elsewhere than where a convolution wants them.
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::network {
namespace {

Network GroupedShuffleDepthwise(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 24, 6, 5});
  const ValueId grouped =
      b.Conv("grouped", x, 48, {.kernel = 1, .padding = 0, .groups = 3, .fused = {Relu()}});
  const ValueId shuffled = b.Shuffled("shuffled", grouped, 16);
  const ValueId depthwise = b.Conv("depthwise", shuffled, 48, {.groups = 48, .scale = true});
  const ValueId back =
      b.Conv("back", depthwise, 24, {.kernel = 1, .padding = 0, .groups = 3, .fused = {Add(x)}});
  return b.Finish({back});
}

// Groups that fill a block of channels together (as ResNeXt and RegNet have them), with as many
// outputs or others, and some that do not come out even.
Network NarrowGroups(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 32, 4, 3});
  const ValueId fours = b.Conv("fours", x, 32, {.groups = 8, .scale = true, .fused = {Relu()}});
  const ValueId eights =
      b.Conv("eights", fours, 64, {.groups = 4, .bias = false, .fused = {Relu()}});
  const ValueId down =
      b.Conv("down", eights, 32, {.kernel = 1, .stride = 2, .padding = 0, .groups = 8});
  const ValueId wide = b.Conv("wide", fours, 96, {.groups = 32});
  const ValueId uneven = b.Conv("uneven", wide, 36, {.groups = 3, .fused = {Relu()}});
  const ValueId more = b.Conv("more", uneven, 36, {.groups = 9, .fused = {Add(uneven)}});
  return b.Finish({down, more});
}

// Channels that are normalized between convolutions: what is transposed has no step of its own
// where it is reordered anyway.
Network TransposesBetweenConvolutions(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const ValueId conv = b.Conv("conv", x, 20, {.fused = {Relu()}});
  const ValueId last = b.Transposed("last", conv, {0, 2, 3, 1});
  const ValueId norm = b.AddOperation("norm", LayerNormalization{}, {last}, {n, 6, 5, 20});
  const ValueId first = b.Transposed("first", norm, {0, 3, 1, 2});
  const ValueId next = b.Conv("next", first, 24, {.kernel = 1, .padding = 0});
  const ValueId turned = b.Transposed("turned", conv, {0, 1, 3, 2});
  const ValueId beside = b.Conv("beside", turned, 16, {.fused = {Relu()}});
  const ValueId seen = b.Transposed("seen", next, {0, 1, 3, 2});
  return b.Finish({next, b.Conv("both", seen, 16, {.fused = {Add(beside)}}), seen});
}

}  // namespace

absl::Span<const NetworkCase> ChannelNetworks() {
  static constexpr NetworkCase kCases[] = {
      {"GroupedShuffleDepthwise", GroupedShuffleDepthwise},
      {"NarrowGroups", NarrowGroups},
      {"TransposesBetweenConvolutions", TransposesBetweenConvolutions}};
  return kCases;
}

}  // namespace tilewire::network
