// SPDX-License-Identifier: Apache-2.0
//
// The rows of matmul that compute gradients, of what is broadcast too.
#include "engine/primitives/matmul/matmul.h"
#include "tests/engine/primitives/batched_gradient_test.h"

namespace tilewire::testing {
namespace {

struct MatrixShape {
  const char* why;
  Dims src, weights, dst;
};

std::vector<MatrixShape> MatrixShapes() {
  std::vector<MatrixShape> shapes = {
      {"one element", {1, 1}, {1, 1}, {1, 1}},
      {"a batch", {3, 5, 33}, {3, 33, 24}, {3, 5, 24}},
      {"weights that all share", {3, 5, 33}, {1, 33, 24}, {3, 5, 24}},
      {"src that all share", {1, 5, 33}, {4, 33, 24}, {4, 5, 24}},
      {"both broadcast", {1, 3, 5, 9}, {2, 1, 9, 7}, {2, 3, 5, 7}},
      {"weights of some", {2, 3, 5, 9}, {2, 1, 9, 7}, {2, 3, 5, 7}},
      {"long sums", {2, 70, 300}, {1, 300, 130}, {2, 70, 130}},
      {"weights of which few products are much to write", {3, 1040}, {1040, 1024}, {3, 1024}},
      {"no row", {0, 8}, {8, 16}, {0, 16}},
      {"no product", {4, 0}, {0, 16}, {4, 16}},
  };
  for (int64_t k : {1, 3, 16, 17, 80}) {
    for (int64_t n : {1, 15, 17, 48})
      shapes.push_back({"sizes around vectors", {3, k}, {k, n}, {3, n}});
  }
  return shapes;
}

GradientCase<MatmulDesc> MatrixCase(const MatrixShape& shape) {
  const auto any = [](const Dims& dims) { return *MemoryDesc::CreateAny(dims, DataType::kF32); };
  return {shape.why, MatmulDesc{any(shape.src), any(shape.weights), {}, any(shape.dst)},
          MatrixProducts(shape.src, shape.weights, shape.dst)};
}

class MatmulBackwardTest : public BatchedGradientTest<MatmulDesc> {
 protected:
  MatmulBackwardTest() : BatchedGradientTest(CreateMatmul) {}
};

TEST_P(MatmulBackwardTest, IsTheOraclesGradient) {
  for (const MatrixShape& shape : MatrixShapes()) {
    for (bool integers : {true, false}) Check(MatrixCase(shape), integers);
  }
}

TEST_P(MatmulBackwardTest, TakesNamedLayouts) {
  const MatrixShape shape = {"layouts", {2, 16, 24}, {2, 24, 40}, {2, 16, 40}};
  for (const char* src : {"abc", "acb", "bac"}) {
    for (const char* weights : {"abc", "acb"}) {
      for (const char* dst : {"abc", "acb"}) {
        SCOPED_TRACE(::testing::Message() << src << " " << weights << " " << dst);
        GradientCase<MatmulDesc> c = MatrixCase(shape);
        c.desc.src = *MemoryDesc::CreatePattern(shape.src, DataType::kF32, src);
        c.desc.weights = *MemoryDesc::CreatePattern(shape.weights, DataType::kF32, weights);
        c.desc.dst = *MemoryDesc::CreatePattern(shape.dst, DataType::kF32, dst);
        Check(c, true);
      }
    }
  }
}

TEST_P(MatmulBackwardTest, AddsAndMasks) {
  CheckPostOps(MatrixCase({"a batch", {2, 5, 33}, {2, 33, 24}, {2, 5, 24}}));
  CheckPostOps(MatrixCase({"shared weights", {2, 5, 16}, {1, 16, 24}, {2, 5, 24}}));
}

// Images are matrices with weights of their own or shared ones, or rows of one matrix.
TEST_P(MatmulBackwardTest, AnImageOfSrcDoesNotDependOnTheBatch) {
  if (!Runs(PropKind::kBackwardData) || GetParam().traits.runs_another)
    GTEST_SKIP() << "layouts may decide what runs inside";
  const auto expect_bits = [&](int64_t batch, const Dims& row, const Dims& weights) {
    ExpectBitsOfImagesAlone(batch, [&](int64_t images) {
      Dims src = {images}, dst = {images};
      for (Dims* dims : {&src, &dst}) dims->insert(dims->end(), row.begin(), row.end());
      src.push_back(weights[weights.size() - 2]);
      dst.push_back(weights.back());
      return MatrixCase({"", src, weights, dst}).desc;
    });
  };
  for (int64_t n : {7, 48, 130, 300}) {
    SCOPED_TRACE(::testing::Message() << n << " products");
    expect_bits(5, {}, {33, n});
    expect_bits(131, {}, {33, n});
    expect_bits(3, {5}, {1, 33, n});
    expect_bits(3, {70}, {1, 17, n});
  }
}

TEST(MatmulGradientErrorsTest, AreNamed) {
  const auto status = StatusOfCreating<MatmulDesc>(CreateMatmul);
  MatmulDesc desc = MatrixCase({"", {3, 8}, {8, 16}, {3, 16}}).desc;
  desc.bias = *MemoryDesc::CreateAny({1, 16}, DataType::kF32);
  desc.prop_kind = PropKind::kBackwardWeights;
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "bias"));
  desc.bias = {};
  Attributes mask;
  ASSERT_THAT(mask.post_ops.Append(MaskPostOp{}), IsOk());
  EXPECT_THAT(status(desc, mask), StatusIs(kUnimplemented, "not mask:0"));
  desc.prop_kind = PropKind::kBackward;
  EXPECT_THAT(status(desc), StatusIs(kUnimplemented, "backward"));
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, MatmulBackwardTest,
                         ::testing::ValuesIn(BackwardRows(MatmulImplementations())),
                         RowName<Implementation<MatmulDesc>>);

}  // namespace
}  // namespace tilewire::testing
