// SPDX-License-Identifier: Apache-2.0
//
// Operations on elements, along rows, and on matrices.
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::network {
namespace {

// Along other dimensions than the last: of an intermediate result, of one that is read again, and
// of a request.
Network SoftmaxAlongOthers(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 5, 3});
  const ValueId conv = b.Conv("conv", x, 21, {.kernel = 1, .padding = 0});
  const ValueId channels = b.SoftmaxOf("channels", conv, 1);
  const ValueId again = b.Conv("again", channels, 16, {});
  return b.Finish({b.SoftmaxOf("rows", again, 2), channels, b.SoftmaxOf("given", x, 1)});
}

// Squeeze and excite with broadcast products, a reduction, a literal, and interpolation between
// neighbours.
Network LoopsWithoutPrimitives(int64_t n) {
  using Function = network::Elementwise::Function;
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId pool = b.GlobalAverage("pool", conv);
  const ValueId gate = b.Conv("gate", pool, 20, {.kernel = 1, .padding = 0});
  const Dims dims = {n, 20, 6, 5};
  const ValueId product =
      b.AddOperation("product", network::Elementwise{Function::kMul}, {conv, gate}, dims);
  const ValueId literal = b.Numbers("literal", {6, 1});
  const ValueId quotient =
      b.AddOperation("quotient", network::Elementwise{Function::kDiv}, {product, literal}, dims);
  const ValueId peaks =
      b.AddOperation("peaks", Reduce{Reduce::Function::kMax}, {quotient}, {n, 20, 1, 5});
  const ValueId wide = b.AddOperation(
      "wide", Interpolate{3, 2, {0, 0, 0, 1, 2, 3, 4, 4}, {1, 0, .5f, .5f, .25f, .75f, 0, 1}}, {x},
      {n, 3, 6, 4});
  const ValueId high =
      b.AddOperation("high", Interpolate{2, 2, {0, 0, 0, 1, 4, 5}, {1, 0, .5f, .5f, .25f, .75f}},
                     {product}, {n, 20, 3, 5});
  const ValueId deep = b.AddOperation(
      "deep", Interpolate{1, 4, {0, 1, 2, 3, 16, 17, 18, 19}, {1, .5f, .5f, 2, .5f, 1, 1, .5f}},
      {product}, {n, 2, 6, 5});
  const ValueId spread =
      b.AddOperation("spread", Interpolate{2, 1, {0, 0, 0}, {1, 2, 3}}, {gate}, {n, 20, 3, 1});
  return b.Finish({quotient, peaks, wide, high, deep, spread, b.Conv("end", product, 8)});
}

// Operations on rows whose primitives take several layouts. The sources are blocked or plain; some
// operations write over a source that nothing else reads.
Network NormalizationsAndProducts(int64_t n) {
  using Function = network::Elementwise::Function;
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const ValueId y = b.Input("y", {n, 20, 6, 5});
  const auto two = [&](const std::string& name, Function function, std::vector<ValueId> srcs) {
    return b.AddOperation(name, network::Elementwise{function}, std::move(srcs), {n, 20, 6, 5});
  };
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId lrn = b.AddOperation("lrn", Lrn{3, 0.5f, 0.75f, 1}, {conv}, {n, 20, 6, 5});
  const ValueId plain = b.AddOperation("plain", Lrn{5, 0.1f, 0.5f, 2}, {y}, {n, 20, 6, 5});
  const ValueId both = two("both", Function::kSub, {y, lrn});
  const ValueId one = b.Numbers("one", {1});
  const ValueId shifted = two("shifted", Function::kMax, {one, both});
  const ValueId mask = b.Conv("mask", conv, 1, {.kernel = 1, .padding = 0});
  const ValueId masked = two("masked", Function::kMul, {shifted, mask});
  const ValueId channels = b.Numbers("channels", {20, 1, 1});
  const ValueId scaled = two("scaled", Function::kDiv, {masked, channels});
  const ValueId floor = two("floor", Function::kFloor, {y});
  const ValueId row =
      b.AddOperation("row", Reduce{Reduce::Function::kSumOfSquares}, {conv}, {n, 20, 1, 1});
  const ValueId rows = b.Reshaped("rows", conv, {n, 4, 5, 30});
  const LayerNormalization factors{1e-3f, PseudoRandom("scale", 30, 0.5f, 1),
                                   PseudoRandom("shift", 30, -1, 1)};
  const ValueId norm = b.AddOperation("norm", factors, {rows}, {n, 4, 5, 30});
  const ValueId bare = b.AddOperation("bare", LayerNormalization{}, {rows}, {n, 4, 5, 30});
  const ValueId numbers = b.Numbers("numbers", {n, 4, 5, 30});
  const ValueId residual = b.AddOperation("residual", Sum{}, {norm, numbers}, {n, 4, 5, 30});
  const ValueId matrix_rows = b.Reshaped("matrix_rows", residual, {n * 20, 30});
  const ValueId once = b.AddOperation("once", factors, {matrix_rows}, {n * 20, 30});
  const ValueId again = b.Reshaped("again", once, {n, 4, 5, 30});
  const ValueId twice = b.AddOperation("twice", Sum{}, {again, residual}, {n, 4, 5, 30});
  const ValueId last = b.AddOperation("last", LayerNormalization{}, {twice}, {n, 4, 5, 30});
  const ValueId turned = b.Transposed("turned", norm, {0, 1, 3, 2});
  const ValueId product = b.AddOperation("product", Matmul{}, {bare, turned}, {n, 4, 5, 5});
  const ValueId matrix = b.Numbers("matrix", {1, 1, 5, 7});
  const ValueId more = b.AddOperation("more", Matmul{}, {product, matrix}, {n, 4, 5, 7});
  return b.Finish({plain, scaled, floor, row, more, twice, last});
}

// A region per image, all of the first one's convolution, and a convolution of what they give.
Network RegionsOfImages(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 9, 8});
  const ValueId conv = b.Conv("conv", x, 20);
  const auto scaled = [&](const std::string& name, Dims dims, float factor, float shift) {
    const ValueId numbers = b.Numbers(name + "/numbers", dims);
    const functions::EltwiseOp linear{functions::EltwiseAlgorithm::kLinear, factor, shift};
    return b.AddOperation(name, Activation{linear}, {numbers}, dims);
  };
  const ValueId rois = scaled("rois", {n, 4}, 4, 3);
  const ValueId zeros = scaled("zeros", {n}, 0, 0);
  const ValueId batches = b.AddOperation("batches", Convert{}, {zeros}, {n}, DataType::kS64);
  const Dims bins = {n, 20, 3, 2};
  const ValueId mean =
      b.AddOperation("mean", RoiAlign{false, true, 1, 2}, {conv, rois, batches}, bins);
  const ValueId most =
      b.AddOperation("most", RoiAlign{true, false, 0.5f, 0}, {conv, rois, batches}, bins);
  return b.Finish({most, b.Conv("end", mean, 8)});
}

// Queries, keys and values are parts of one projection, read by their strides; a result whose heads
// come together again, and one that is used as it is. Masks of heads, and of windows. Keys that a
// convolution computes, in a blocked layout.
Network AttentionOfHeads(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 6, 5});
  const ValueId rows = b.Reshaped("rows", x, {2 * n, 25, 12});
  const ValueId split = b.Reshaped("split", rows, {2 * n, 25, 3, 2, 2});
  const ValueId apart = b.Transposed("apart", split, {2, 0, 3, 1, 4});
  const auto part = [&](const std::string& name, int64_t i) {
    Select select;
    select.from = {{{i, 1, 1}}, {}, {}, {}, {}};
    const ValueId selected = b.AddOperation(name, select, {apart}, {1, 2 * n, 2, 25, 2});
    return b.Reshaped(name + "_heads", selected, {2 * n, 2, 25, 2});
  };
  const ValueId queries = part("q", 0), keys = part("k", 1), values = part("v", 2);
  const ValueId turned = b.Transposed("turned", keys, {0, 1, 3, 2});
  const std::vector<ValueId> masks = {b.Numbers("of_heads", {2, 25, 25}),
                                      b.Numbers("of_windows", {1, 2, 1, 25, 25})};
  const Dims dims = {2 * n, 2, 25, 2};
  const ValueId heads =
      b.AddOperation("heads", Attention{0.5f}, {queries, turned, values, masks[0], masks[1]}, dims);
  const ValueId together = b.Transposed("together", heads, {0, 2, 1, 3});
  const ValueId joined = b.Reshaped("joined", together, {n, 50, 4});
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId flat = b.Reshaped("flat", conv, {n, 20, 30});
  const ValueId flat_keys = b.Transposed("flat_keys", flat, {0, 2, 1});
  const ValueId plain = b.AddOperation("plain", Attention{}, {flat, flat_keys, flat}, {n, 20, 30});
  const ValueId blocked =
      b.AddOperation("blocked", Attention{2},
                     {conv, b.Transposed("swapped", conv, {0, 1, 3, 2}), conv}, {n, 20, 6, 5});
  return b.Finish({joined, plain, blocked});
}

// Windows of an image and their heads, as parts of one projection; the heads come together again in
// the next layer's order, or in one that no strides of batches and heads have. A bias of heads, and
// a mask of windows. One matrix without leading dimensions.
Network AttentionOfWindows(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 20, 12});
  const ValueId split = b.Reshaped("split", x, {n, 3, 20, 3, 2, 2});
  const ValueId apart = b.Transposed("apart", split, {3, 0, 1, 4, 2, 5});
  const auto part = [&](const std::string& name, int64_t i) {
    Select select;
    select.from = {{{i, 1, 1}}, {}, {}, {}, {}, {}};
    const ValueId selected = b.AddOperation(name, select, {apart}, {1, n, 3, 2, 20, 2});
    return b.Reshaped(name + "_heads", selected, {n, 3, 2, 20, 2});
  };
  const ValueId queries = part("q", 0), values = part("v", 2);
  const ValueId keys = b.Transposed("keys", part("k", 1), {0, 1, 2, 4, 3});
  const Dims dims = {n, 3, 2, 20, 2};
  const std::vector<ValueId> masks = {b.Numbers("of_heads", {2, 20, 20}),
                                      b.Numbers("of_windows", {1, 3, 1, 20, 20})};
  const ValueId rows =
      b.AddOperation("rows", Attention{0.5f}, {queries, keys, values, masks[0], masks[1]}, dims);
  const ValueId mixed =
      b.AddOperation("mixed", Attention{}, {queries, keys, values, masks[1]}, dims);
  const ValueId matrix = b.Numbers("matrix", {20, 12});
  const ValueId whole = b.AddOperation(
      "whole", Attention{}, {matrix, b.Transposed("turned", matrix, {1, 0}), matrix}, {20, 12});
  const ValueId sum =
      b.AddOperation("sum", network::Elementwise{network::Elementwise::Function::kAdd}, {x, whole},
                     {n, 3, 20, 12});
  return b.Finish({b.Transposed("together", rows, {0, 1, 3, 2, 4}),
                   b.Transposed("scattered", mixed, {0, 3, 1, 2, 4}), sum});
}

// Integers that are computed in their type, and a blocked tensor in f64 and back.
Network NumbersOfOtherTypes(int64_t n) {
  using Function = network::Elementwise::Function;
  NetworkBuilder b;
  const Dims dims = {n, 3, 6, 5}, wide = {n, 20, 6, 5};
  const ValueId x = b.Input("x", dims);
  const functions::EltwiseOp enlarge{functions::EltwiseAlgorithm::kLinear, 100, 0};
  const ValueId large = b.AddOperation("large", Activation{enlarge}, {x}, dims);
  const ValueId whole = b.AddOperation("whole", Convert{}, {large}, dims, DataType::kS32);
  const ValueId square = b.AddOperation("square", network::Elementwise{Function::kMul},
                                        {whole, whole}, dims, DataType::kS32);
  const ValueId numbers = b.AddOperation("numbers", Convert{}, {square}, dims);
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId twice = b.AddOperation("twice", Convert{}, {conv}, wide, DataType::kF64);
  const ValueId once = b.AddOperation("once", Convert{}, {twice}, wide);
  return b.Finish({numbers, b.Conv("end", once, 8)});
}

// By statistics that are given: of a blocked tensor that is dead, of one that is read again, and of
// rows.
Network NormalizedByGivenStatistics(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const auto normalized = [&b](const std::string& name, ValueId src) {
    std::vector<ValueId> srcs = {src};
    for (const char* of : {"scale", "shift", "mean", "variance"})
      srcs.push_back(b.Numbers(name + of, {b.dims(src)[1]}));
    const Dims dims = b.dims(src);
    return b.AddOperation(name, BatchNormalization{1e-3f, /*uses_given_statistics=*/true},
                          std::move(srcs), dims);
  };
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId pixels = normalized("pixels", conv);
  const ValueId again = normalized("again", pixels);
  const ValueId pool = b.Reshaped("flat", b.GlobalAverage("pool", again), {n, 20});
  return b.Finish({pixels, again, normalized("rows", pool), normalized("given", x)});
}

}  // namespace

absl::Span<const NetworkCase> ElementNetworks() {
  static constexpr NetworkCase kCases[] = {
      {"SoftmaxAlongOthers", SoftmaxAlongOthers},
      {"AttentionOfHeads", AttentionOfHeads},
      {"AttentionOfWindows", AttentionOfWindows},
      {"LoopsWithoutPrimitives", LoopsWithoutPrimitives},
      {"NormalizationsAndProducts", NormalizationsAndProducts},
      {"NormalizedByGivenStatistics", NormalizedByGivenStatistics},
      {"RegionsOfImages", RegionsOfImages},
      {"NumbersOfOtherTypes", NumbersOfOtherTypes}};
  return kCases;
}

}  // namespace tilewire::network
