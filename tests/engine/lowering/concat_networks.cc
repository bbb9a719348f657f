// SPDX-License-Identifier: Apache-2.0
//
// Concatenations, and parts of tensors.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::network {
namespace {

using functions::EltwiseAlgorithm;

Network BranchesAndConcat(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 16, 8, 9});
  const ValueId one = b.Conv("one", x, 16, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId three = b.Conv("three", x, 24, {.fused = {Relu()}});
  const ValueId pool = b.Pool("pool", x, Pooling::Algorithm::kAvgIncludePadding, 3, 1, 1);
  const ValueId all = b.ConcatOf("all", {one, three, pool});
  return b.Finish({b.Conv("last", all, 10, {.kernel = 1, .padding = 0})});
}

// Parts of a blocked tensor: some consist of whole blocks (views), others cut blocks. They are read
// by operations that take views and by others. One is an output; one is the first images of its
// source.
Network PartsOfBlockedTensors(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const ValueId conv = b.Conv("conv", x, 48, {.fused = {Relu()}});
  const auto channels = [&](const std::string& name, int64_t first, int64_t count) {
    return b.AddOperation(name, Select{{{}, {{first, 1, count}}, {}, {}}}, {conv},
                          {n, count, 6, 5});
  };
  const ValueId low = channels("low", 0, 16), high = channels("high", 16, 32);
  const ValueId cut = channels("cut", 7, 20);
  const ValueId convolved = b.Conv("convolved", high, 32, {.fused = {Add(high)}});
  const ValueId tanh = b.Elementwise("tanh", low, {EltwiseAlgorithm::kTanh});
  const ValueId pooled = b.MaxPool("pooled", high, 2, 1, 0);
  const ValueId more = b.Conv("more", cut, 8, {.kernel = 1, .padding = 0});
  const ValueId all = b.ConcatOf("all", {high, low, cut, low});
  return b.Finish({b.SumOf("sum", {convolved, high}), tanh, pooled, more, all, low, cut});
}

// Concatenations of whole blocks, one inside the other. Their sources are read again before and
// after, are written over, appear twice, are the request's, an output, or not whole blocks.
Network ConcatsOfWholeBlocks(int64_t n) {
  NetworkBuilder b;
  const ConvolutionOptions point = {.kernel = 1, .padding = 0};
  const ValueId x = b.Input("x", {n, 16, 3, 2});
  const ValueId first = b.Conv("first", x, 32, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId second = b.Conv("second", first, 16, point);
  const ValueId both = b.ConcatOf("both", {first, second});
  const ValueId third =
      b.Conv("third", both, 16, {.kernel = 1, .padding = 0, .fused = {Add(second)}});
  const ValueId all = b.ConcatOf("all", {both, third, second, x, third});
  const ValueId tanh = b.Elementwise("tanh", third, {EltwiseAlgorithm::kTanh});
  const ValueId over = b.Elementwise("over", both, {EltwiseAlgorithm::kSquare});
  const ValueId cut =
      b.AddOperation("cut", Select{{{}, {{16, 1, 48}}, {}, {}}}, {all}, {n, 48, 3, 2});
  const ValueId mixed = b.SumOf("mixed", {cut, over});
  const ValueId end = b.Conv("end", all, 32, point);
  const ValueId last = b.ConcatOf("last", {end, tanh});
  return b.Finish({mixed, end, last, b.Conv("tail", last, 8, point)});
}

// Nested concatenations of what several implementations write and read: a chain as in densely
// connected networks, and branches whose results are read before.
Network ConcatsOfSeveralImages(int64_t n) {
  NetworkBuilder b;
  const ConvolutionOptions point = {.kernel = 1, .padding = 0, .fused = {Relu()}};
  const ConvolutionOptions scale = {.kernel = 1, .padding = 0, .groups = 48, .fused = {Relu()}};
  const ValueId x = b.Input("x", {n, 3, 12, 11});
  const ValueId stem = b.Conv("stem", x, 32, {.fused = {Relu()}});
  const ValueId narrow = b.Conv("narrow", stem, 16, {.fused = {Relu()}});
  const ValueId two = b.ConcatOf("two", {stem, narrow});
  const ValueId normal = b.Conv("normal", two, 48, scale);
  const ValueId more = b.Conv("more", b.Conv("wide", normal, 64, point), 16);
  const ValueId three = b.ConcatOf("three", {two, more});
  const ValueId pool = b.MaxPool("pool", three, 3, 1, 1);
  const ValueId depthwise = b.Conv("depthwise", pool, 64, {.groups = 64});
  const ValueId sum = b.Conv("sum", stem, 16, {.kernel = 1, .padding = 0, .fused = {Add(more)}});
  const ValueId four = b.ConcatOf("four", {three, pool, depthwise, sum});
  const ValueId cut =
      b.AddOperation("cut", Select{{{}, {{32, 1, 48}}, {}, {}}}, {four}, {n, 48, 12, 11});
  return b.Finish({b.Conv("end", four, 16, point), b.Conv("part", cut, 16, point)});
}

// Mosaics: concatenations inside a concatenation along another dimension, for all pairs of those
// that no other image sees.
Network Mosaics(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 16, 4, 8});
  std::vector<ValueId> outputs;
  for (int inner = 1; inner < 4; ++inner) {
    for (int outer = 1; outer < 4; ++outer) {
      if (inner == outer) continue;
      std::vector<ValueId> tiles;
      for (int i = 0; i < 4; ++i) {
        const std::string name = absl::StrCat("tile_", inner, outer, i);
        tiles.push_back(b.Conv(name, x, 32, {.kernel = 1, .padding = 0}));
      }
      const std::string name = absl::StrCat("mosaic_", inner, outer);
      const ValueId left = b.ConcatOf(name + "_left", {tiles[0], tiles[1]}, inner);
      const ValueId right = b.ConcatOf(name + "_right", {tiles[2], tiles[3]}, inner);
      outputs.push_back(b.ConcatOf(name, {left, right}, outer));
    }
  }
  return b.Finish(outputs);
}

}  // namespace

absl::Span<const NetworkCase> ConcatNetworks() {
  static constexpr NetworkCase kCases[] = {{"BranchesAndConcat", BranchesAndConcat},
                                           {"PartsOfBlockedTensors", PartsOfBlockedTensors},
                                           {"ConcatsOfWholeBlocks", ConcatsOfWholeBlocks},
                                           {"ConcatsOfSeveralImages", ConcatsOfSeveralImages},
                                           {"Mosaics", Mosaics}};
  return kCases;
}

}  // namespace tilewire::network
