// SPDX-License-Identifier: Apache-2.0
//
// Operations that move elements, and those that find their places.
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::network {
namespace {

using functions::EltwiseAlgorithm;

// ShuffleNet's shuffle as Reshape, Transpose and Reshape, then a flatten and a classifier.
Network ReshapesAndTransposes(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 4, 5});
  const ValueId conv = b.Conv("conv", x, 16);
  const ValueId split = b.Reshaped("split", conv, {n, 2, 8, 4, 5});
  const ValueId turned = b.Transposed("turned", split, {0, 2, 1, 3, 4});
  const ValueId joined = b.Reshaped("joined", turned, {n, 16, 4, 5});
  const ValueId next = b.Conv("next", joined, 20, {.fused = {Relu()}});
  const ValueId flat = b.Reshaped("flat", next, {n, 400});
  const ValueId fc = b.Fc("fc", flat, 11, {.transposed = true});
  const ValueId last = b.Transposed("last", next, {0, 3, 1, 2});
  return b.Finish({b.SoftmaxOf("softmax", fc, 1), last, split});
}

// Repeats, mirrored edges, gaps and fills, in blocked and in plain layouts.
Network SelectedElements(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 4, 5});
  const ValueId conv = b.Conv("conv", x, 20);
  const ValueId padded = b.AddOperation(
      "padded",
      Select{{{}, {{-1, 0, 1}, {0, 1, 20}}, {{2, -1, 2}, {0, 1, 4}}, {{0, 0, 3}, {1, 2, 2}}}, 0.5f},
      {conv}, {n, 21, 6, 5});
  const ValueId again = b.Conv("again", padded, 16, {.kernel = 1, .padding = 0});
  const ValueId rows =
      b.AddOperation("rows", Select{{{}, {}, {{3, 0, 2}, {1, 1, 1}}, {}}}, {x}, {n, 3, 3, 5});
  return b.Finish({again, padded, rows});
}

// Channels of three tensors, one of which is the request's, in blocked and in plain layouts.
Network GatheredChannels(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 3, 5});
  const ValueId y = b.Input("y", {n, 7, 3, 5});
  const ConvolutionOptions point = {.kernel = 1, .padding = 0};
  const ValueId first = b.Conv("first", x, 29, point), second = b.Conv("second", first, 33, point);
  GatherChannels three, plain;
  for (int64_t c = 0; c < 41; ++c)
    three.from.push_back({static_cast<int>(c % 3), c * 7 %
                                                       (c % 3 == 0   ? 29
                                                        : c % 3 == 1 ? 33
                                                                     : 20)});
  for (int64_t c = 0; c < 9; ++c) plain.from.push_back({0, c * 3 % 7});
  const ValueId mixed = b.AddOperation("mixed", three, {first, second, x}, {n, 41, 3, 5});
  const ValueId turned = b.AddOperation("turned", plain, {y}, {n, 9, 3, 5});
  return b.Finish({b.Conv("end", mixed, 16, point), mixed, turned});
}

// Reads the request's numbers directly, so that rounding cannot change their order.
Network BestElements(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 6, 5});
  const ValueId values = b.AddOperation("values", TopK{1, true, false}, {x}, {n, 3, 6, 5});
  const ValueId places = b.AddOperation("places", TopK{1, true, true}, {x}, {n, 3, 6, 5});
  const ValueId least = b.AddOperation("least", TopK{3, false, true, true}, {x}, {n, 20, 6, 1});
  return b.Finish({values, places, least});
}

// Rows of a table and of a blocked tensor. The request's numbers are the indices; some count
// from the end.
Network GatheredByComputedIndices(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 3, 5});
  const ValueId best = b.AddOperation("best", TopK{1, true, true}, {x}, {n, 2, 3, 5});
  const ValueId back = b.Elementwise("back", best, {EltwiseAlgorithm::kLinear, -1, -1});
  const ValueId table = b.Numbers("table", {20, 7});
  const ValueId rows = b.AddOperation("rows", Gather{0}, {table, best}, {n, 2, 3, 5, 7});
  const ValueId last = b.AddOperation("last", Gather{0}, {table, back}, {n, 2, 3, 5, 7});
  const ValueId conv = b.Conv("conv", x, 24);
  const ValueId order =
      b.AddOperation("order", Literal{MakeFloats("order", {2, 2}, {23, -1, 0, -24})}, {}, {2, 2});
  const ValueId channels = b.AddOperation("channels", Gather{1}, {conv, order}, {n, 2, 2, 3, 5});
  return b.Finish({rows, last, channels});
}

// The maxima of the windows of every image, and their indices for the first image only: indices
// also count the elements of all images before.
Network WindowsMaxima(int64_t n) {
  using Result = MaxWindow::Result;
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 6, 5});
  const MaxWindow window{Result::kElement, {3, 2}, {2, 1}, {1, 3}, {2, 1}};
  MaxWindow rows = window, columns = window;
  rows.result = Result::kIndex;
  columns.result = Result::kColumnMajorIndex;
  const ValueId first =
      b.AddOperation("first", Select{{{{0, 0, n}}, {}, {}, {}}}, {x}, {n, 3, 6, 5});
  const ValueId one =
      b.AddOperation("one", Select{{{{0, 1, 1}}, {}, {}, {}}}, {first}, {1, 3, 6, 5});
  const ValueId by_rows = b.AddOperation("rows", rows, {one}, {1, 3, 3, 4});
  const ValueId by_columns = b.AddOperation("columns", columns, {one}, {1, 3, 3, 4});
  const ValueId maxima = b.AddOperation("maxima", window, {x}, {n, 3, 3, 4});
  const auto repeated = [&](const std::string& name, ValueId value) {
    return b.AddOperation(name, Select{{{{0, 0, n}}, {}, {}, {}}}, {value}, {n, 3, 3, 4});
  };
  return b.Finish({maxima, repeated("all_rows", by_rows), repeated("all_columns", by_columns)});
}

}  // namespace

Network GatheredByTheRequest(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3});
  const ValueId table = b.Numbers("table", {4, 2});
  return b.Finish({b.AddOperation("rows", Gather{0}, {table, x}, {n, 3, 2})});
}

absl::Span<const NetworkCase> MovingNetworks() {
  static constexpr NetworkCase kCases[] = {{"ReshapesAndTransposes", ReshapesAndTransposes},
                                           {"SelectedElements", SelectedElements},
                                           {"GatheredChannels", GatheredChannels},
                                           {"BestElements", BestElements},
                                           {"GatheredByComputedIndices", GatheredByComputedIndices},
                                           {"WindowsMaxima", WindowsMaxima}};
  return kCases;
}

}  // namespace tilewire::network
