// SPDX-License-Identifier: Apache-2.0
//
// The rows of inner product that compute gradients.
#include "engine/primitives/inner_product/inner_product.h"
#include "tests/engine/primitives/batched_gradient_test.h"

namespace tilewire::testing {
namespace {

struct ConnectedShape {
  const char* why;
  Dims image;  // [C, spatial...]
  int64_t batch, outputs;
};

std::vector<ConnectedShape> ConnectedShapes() {
  std::vector<ConnectedShape> shapes = {
      {"one of each", {1}, 1, 1},
      {"a classifier", {160}, 8, 100},
      {"images in a plane", {16, 3, 4}, 3, 40},
      {"images in a volume", {5, 2, 3, 2}, 2, 17},
      {"outputs in parts", {70}, 3, 300},
      {"a batch in parts", {33}, 130, 24},
      {"no image", {16}, 0, 8},
  };
  for (int64_t channels : {3, 15, 16, 17, 48, 80}) {
    for (int64_t outputs : {1, 15, 17})
      shapes.push_back({"channels around vectors", {channels}, 3, outputs});
  }
  return shapes;
}

GradientCase<InnerProductDesc> ConnectedCase(const ConnectedShape& shape, bool bias = true,
                                             absl::string_view src_pattern = "",
                                             absl::string_view weights_pattern = "") {
  Dims src = {shape.batch}, weights = {shape.outputs};
  src.insert(src.end(), shape.image.begin(), shape.image.end());
  weights.insert(weights.end(), shape.image.begin(), shape.image.end());
  const auto tensor = [](const Dims& dims, absl::string_view pattern) {
    return pattern.empty() ? *MemoryDesc::CreateAny(dims, DataType::kF32)
                           : *MemoryDesc::CreatePattern(dims, DataType::kF32, pattern);
  };
  InnerProductDesc desc;
  desc.src = tensor(src, src_pattern);
  desc.weights = tensor(weights, weights_pattern);
  desc.dst = tensor({shape.batch, shape.outputs}, "");
  if (bias) desc.bias = tensor({shape.outputs}, "");
  return {shape.why, desc, InnerProducts(shape.batch, shape.outputs, *ElementCount(shape.image))};
}

class InnerProductBackwardTest : public BatchedGradientTest<InnerProductDesc> {
 protected:
  InnerProductBackwardTest() : BatchedGradientTest(CreateInnerProduct) {}
};

TEST_P(InnerProductBackwardTest, IsTheOraclesGradient) {
  for (const ConnectedShape& shape : ConnectedShapes()) {
    for (bool integers : {true, false}) Check(ConnectedCase(shape), integers);
  }
}

TEST_P(InnerProductBackwardTest, TakesNamedLayouts) {
  const ConnectedShape shape = {"layouts", {16, 3, 4}, 2, 24};
  for (const char* src : {"abcd", "acdb", "aBcd8b"}) {
    for (const char* weights : {"abcd", "acdb", "bcda", "aBcd8b", "ABcd8b8a"}) {
      SCOPED_TRACE(::testing::Message() << src << " " << weights);
      Check(ConnectedCase(shape, false, src, weights), true);
    }
  }
}

TEST_P(InnerProductBackwardTest, AddsAndMasks) {
  CheckPostOps(ConnectedCase({"vectors", {48}, 3, 24}));
  CheckPostOps(ConnectedCase({"tails", {7, 3, 3}, 5, 11}));
}

// Batches of fewer and of more rows than tiles and pieces have, and one whose gradient is so large
// that it goes past the caches.
TEST_P(InnerProductBackwardTest, AnImageOfSrcDoesNotDependOnTheBatch) {
  if (!Runs(PropKind::kBackwardData)) GTEST_SKIP() << "is of weights";
  std::vector<ConnectedShape> shapes = {{"a classifier", {160}, 9, 100},
                                        {"images in a plane", {16, 3, 4}, 3, 40},
                                        {"outputs in parts", {70}, 5, 300},
                                        {"tails of parts", {33}, 131, 129}};
  if (!GetParam().traits.is_reference) shapes.push_back({"much to write", {16384}, 257, 33});
  for (const ConnectedShape& shape : shapes) {
    SCOPED_TRACE(shape.why);
    ExpectBitsOfImagesAlone(shape.batch, [&](int64_t images) {
      ConnectedShape of_images = shape;
      of_images.batch = images;
      return ConnectedCase(of_images, /*bias=*/false).desc;
    });
  }
}

TEST(InnerProductGradientErrorsTest, AreNamed) {
  const auto status = StatusOfCreating<InnerProductDesc>(CreateInnerProduct);
  const InnerProductDesc desc = ConnectedCase({"", {16}, 2, 8}).desc;
  InnerProductDesc of_src = desc, all = desc;
  of_src.prop_kind = PropKind::kBackwardData;
  all.prop_kind = PropKind::kBackward;
  EXPECT_THAT(status(of_src), StatusIs(kInvalid, "bias"));
  EXPECT_THAT(status(all), StatusIs(kUnimplemented, "backward"));
  Attributes relu;
  ASSERT_THAT(relu.post_ops.Append(EltwisePostOp{}), IsOk());
  EXPECT_THAT(status(Backward(desc, PropKind::kBackwardWeights), relu),
              StatusIs(kUnimplemented, "inner_product: backward_weights takes a sum"));
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, InnerProductBackwardTest,
                         ::testing::ValuesIn(BackwardRows(InnerProductImplementations())),
                         RowName<Implementation<InnerProductDesc>>);

}  // namespace
}  // namespace tilewire::testing
