// SPDX-License-Identifier: Apache-2.0
//
// Which primitives are told that they may multiply less exactly.
#include <map>
#include <string>

#include "engine/lowering/lowering.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::lowering {
namespace {

using network::NetworkBuilder;
using network::ValueId;
using ::testing::HasSubstr;
using ::testing::Not;

network::Network ProductsOfAllKinds() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {1, 3, 8, 6});
  const ValueId first = b.Conv("first", x, 32);
  const ValueId wide = b.Conv("wide", first, 32);
  const ValueId depthwise = b.Conv("depthwise", wide, 32, {.groups = 32});
  const ValueId integers = b.Conv("integers", depthwise, 32);
  std::get<network::Convolution>(b.last().params).sums_integers = true;
  const ValueId fc = b.Fc("fc", integers, 16);
  const ValueId row = b.Reshaped("row", fc, {16, 1});
  return b.Finish({b.AddOperation("matmul", network::Matmul{}, {row, fc}, {16, 16})});
}

// The attributes of every step by its node.
std::map<std::string, std::string> AttributesWith(
    Precision precision, const std::map<std::string, Precision>& node_precisions = {}) {
  const network::Network network = ProductsOfAllKinds();
  PrimitiveCache cache(int64_t{64} << 20);
  LoweringContext context;
  runtime::PackedWeights weights(&cache, context.options);
  context.cache = &cache;
  context.weights = &weights;
  context.precision = precision;
  context.node_precisions = node_precisions;
  std::map<std::string, std::string> attributes;
  const auto plan = LowerNetwork(network, context).value();
  for (const runtime::Step& step : plan->steps) {
    if (step.primitive != nullptr)
      attributes[step.node] += step.primitive->info().creation.attributes;
  }
  return attributes;
}

TEST(PrecisionTest, ProductsOfManyChannelsMayBeLessExactIfTheModelMay) {
  auto permitted = AttributesWith(Precision::kBf16);
  for (const char* node : {"first", "wide", "fc", "matmul"})
    EXPECT_THAT(permitted[node], HasSubstr("precision:bf16")) << node;
  for (const char* node : {"depthwise", "integers"})
    EXPECT_THAT(permitted[node], Not(HasSubstr("precision"))) << node;
  EXPECT_THAT(AttributesWith(Precision::kFast)["wide"], HasSubstr("precision:fast"));
  for (const auto& [node, attributes] : AttributesWith(Precision::kExact))
    EXPECT_THAT(attributes, Not(HasSubstr("precision"))) << node;
}

TEST(PrecisionTest, NodesHaveTheirOwn) {
  const auto mixed = AttributesWith(
      Precision::kExact,
      {{"wide", Precision::kBf16}, {"fc", Precision::kBf16}, {"none", Precision::kBf16}});
  EXPECT_THAT(mixed.at("wide"), HasSubstr("precision:bf16"));
  EXPECT_THAT(mixed.at("fc"), HasSubstr("precision:bf16"));
  for (const char* node : {"first", "depthwise", "integers", "matmul"})
    EXPECT_THAT(mixed.at(node), Not(HasSubstr("precision"))) << node;
  EXPECT_THAT(AttributesWith(Precision::kBf16, {{"wide", Precision::kExact}})["wide"],
              Not(HasSubstr("precision")));
}

// A product of this many rows for each image, by itself.
std::string AttributesOfRows(int64_t images, int64_t rows, bool requests_decide_sizes = false) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {images, rows, 32});
  const ValueId flat = b.Reshaped("flat", x, {images * rows, 32});
  const network::Network network = b.Finish({b.Fc("fc", flat, 32)});
  PrimitiveCache cache(int64_t{64} << 20);
  LoweringContext context;
  runtime::PackedWeights weights(&cache, context.options);
  context.cache = &cache;
  context.weights = &weights;
  context.precision = Precision::kFast;
  context.requests_decide_sizes = requests_decide_sizes;
  const auto plan = LowerNetwork(network, context).value();
  for (const runtime::Step& step : plan->steps) {
    if (step.node == "fc") return step.primitive->info().creation.attributes;
  }
  return "no step";
}

// Whatever the batch is: bits must not depend on it.
TEST(PrecisionTest, FewRowsOfAnImageAreExactInsteadOfFast) {
  for (int64_t images : {1, 3, 64}) {
    EXPECT_THAT(AttributesOfRows(images, 1), Not(HasSubstr("precision"))) << images;
    EXPECT_THAT(AttributesOfRows(images, 15), Not(HasSubstr("precision"))) << images;
    EXPECT_THAT(AttributesOfRows(images, 16), HasSubstr("precision:fast")) << images;
  }
  EXPECT_THAT(AttributesOfRows(1, 64, /*requests_decide_sizes=*/true), Not(HasSubstr("precision")));
}

}  // namespace
}  // namespace tilewire::lowering
