// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/inner_product/inner_product.h"

#include <cmath>
#include <variant>

#include "absl/strings/match.h"
#include "engine/base/checked_math.h"
#include "engine/primitives/reorder/reorder.h"
#include "tests/engine/primitives/integer_tensors.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

using Algorithm = EltwiseAlgorithm;

// Logical row-major contents; dst is what a sum post-op finds there.
struct Contents {
  std::vector<float> src, weights, bias, dst;
};

struct Shape {
  Dims src;  // [N,C] or [N,C,spatial...]
  int64_t outputs;
  bool bias = true;

  Dims WeightsDims() const {
    Dims dims = src;
    dims[0] = outputs;
    return dims;
  }
  Dims DstDims() const { return {src[0], outputs}; }
  int64_t Products() const { return *ElementCount(WeightsDims()) / outputs; }
};

Contents RandomContents(const Shape& shape) {
  return {.src = RandomFloats(*ElementCount(shape.src), 1),
          .weights = RandomFloats(*ElementCount(shape.WeightsDims()), 2),
          .bias = RandomFloats(shape.bias ? shape.outputs : 0, 3),
          .dst = RandomFloats(*ElementCount(shape.DstDims()), 4)};
}

// Every sum is exact in f32, whatever its order.
Contents IntegerContents(const Shape& shape) {
  return {.src = RandomIntegers(*ElementCount(shape.src), 1),
          .weights = RandomIntegers(*ElementCount(shape.WeightsDims()), 2),
          .bias = RandomIntegers(shape.bias ? shape.outputs : 0, 3),
          .dst = RandomIntegers(*ElementCount(shape.DstDims()), 4)};
}

std::vector<std::vector<PostOp>> Chains() {
  const EltwisePostOp relu{{Algorithm::kRelu}};
  return {{relu},
          {EltwisePostOp{{Algorithm::kRelu, 0.25f}, 2}},
          {SumPostOp{}},
          {SumPostOp{.scale = 0.5f}, relu},
          {relu, SumPostOp{.scale = -2}},
          {EltwisePostOp{{Algorithm::kTanh}}},
          {SumPostOp{}, EltwisePostOp{{Algorithm::kLogistic}}, relu, SumPostOp{}}};
}

Attributes AttributesOf(const std::vector<PostOp>& chain) {
  Attributes attributes;
  for (const PostOp& entry : chain) EXPECT_THAT(attributes.post_ops.Append(entry), IsOk());
  return attributes;
}

struct Rounded {
  double value, error;
};

// One element in double precision. |result - value| <= (K + 2) 2^-24 sum|a b| (Higham 2002, 3.1);
// then each post-op passes the error on (no function here has a slope over 1) and adds some units
// in the last place. `left_out` is what a row leaves out of a product.
Rounded Expected(const Shape& shape, const Contents& contents, const PostOps& post_ops, int64_t n,
                 int64_t oc, double left_out) {
  const int64_t k = shape.Products();
  double value = shape.bias ? contents.bias[oc] : 0, magnitude = std::abs(value);
  for (int64_t i = 0; i < k; ++i) {
    const double product =
        static_cast<double>(contents.src[n * k + i]) * contents.weights[oc * k + i];
    value += product;
    magnitude += std::abs(product);
  }
  double error = (static_cast<double>(k + 2) * 0x1p-24 + left_out) * magnitude;
  for (const PostOp& entry : post_ops.entries()) {
    if (const auto* eltwise = std::get_if<EltwisePostOp>(&entry)) {
      value = eltwise->scale * functions::EltwiseScalar(eltwise->op, static_cast<float>(value));
      error = std::abs(eltwise->scale) * error + 4 * 0x1p-23 * std::abs(value);
    } else {
      const double before = std::get<SumPostOp>(entry).scale * contents.dst[n * shape.outputs + oc];
      error += 0x1p-23 * (std::abs(value) + std::abs(before));
      value += before;
    }
  }
  return {value, error + 0x1p-126};
}

// Planes are split by the reorder that is used when a model is loaded.
Bytes PackAsWeights(const MemoryDesc& desc, const std::vector<float>& values) {
  if (!desc.IsOpaque()) return PackRounded(desc, values);
  const MemoryDesc plain = Plain(desc.dims());
  const auto reorder = CreateReorder({plain, desc}, {}, {});
  EXPECT_THAT(reorder, IsOk());
  if (!reorder.ok()) return {};
  const Bytes from = Pack(plain, values);
  Bytes to = Garbage(desc, 5);
  ExecuteArgs args;
  args.Set(kArgSrc, from.data()).Set(kArgDst, to.data());
  EXPECT_THAT((*reorder)->Execute(args, threading::Team::Serial()), IsOk());
  return to;
}

bool ReadsPlainWeights(const Implementation<InnerProductDesc>& row) {
  return absl::EndsWith(row.name, "_plain_weights");
}

// Plain weights whose inputs lie as an image of src does, with the outputs innermost or outermost.
MemoryDesc WeightsInOrderOf(const MemoryDesc& src, int64_t outputs, bool outputs_last) {
  Dims dims = src.dims();
  dims[0] = outputs;
  std::string inputs(PlainPattern(src.rank()).substr(1));
  if (src.IsPlain()) {
    std::stable_sort(inputs.begin(), inputs.end(),
                     [&](char a, char b) { return src.stride(a - 'a') > src.stride(b - 'a'); });
  }
  return *MemoryDesc::CreatePattern(dims, DataType::kF32,
                                    outputs_last ? inputs + "a" : "a" + inputs);
}

class InnerProductTest : public RowTest<InnerProductDesc> {
 protected:
  InnerProductTest() : RowTest(CreateInnerProduct) {}

  // Calls test() for every layout of weights that the row is asked for.
  template <typename Test>
  void ForEachWeights(const Test& test) {
    for (const bool outputs_last : {true, false}) {
      outputs_last_ = outputs_last;
      SCOPED_TRACE(outputs_last ? "outputs innermost" : "outputs outermost");
      if (outputs_last || ReadsPlainWeights(GetParam())) test();
    }
    outputs_last_ = true;
  }

  // The weights in the layout that the row wants; nothing where it refuses.
  std::optional<Created> CreateFor(const Shape& shape, const MemoryDesc& src, const MemoryDesc& dst,
                                   const Attributes& attributes) {
    InnerProductDesc desc{.src = src, .dst = dst};
    desc.weights = ReadsPlainWeights(GetParam())
                       ? WeightsInOrderOf(src, shape.outputs, outputs_last_)
                       : *MemoryDesc::CreateAny(shape.WeightsDims(), DataType::kF32);
    if (shape.bias) desc.bias = Plain({shape.outputs});
    return Create(desc, attributes);
  }

  // The logical result.
  static std::vector<float> Run(const Created& primitive, const Contents& contents) {
    const Bytes src = Pack(primitive.Desc(kArgSrc), contents.src);
    const Bytes weights = PackAsWeights(primitive.Desc(kArgWeights), contents.weights);
    const Bytes bias =
        contents.bias.empty()
            ? Bytes()
            : Pack(Plain({static_cast<int64_t>(contents.bias.size())}), contents.bias);
    const MemoryDesc& dst = primitive.Desc(kArgDst);
    Bytes before = Garbage(dst, 7);
    if (primitive.library->info().reads_destination) before = Pack(dst, contents.dst);
    Inputs inputs = {{kArgSrc, &src}, {kArgWeights, &weights}};
    if (!bias.empty()) inputs.emplace_back(kArgBias, &bias);
    return Unpack<float>(dst, ExecuteAllWays(primitive, inputs, kArgDst, before));
  }

  void ExpectMatches(const Shape& shape, const MemoryDesc& src, const MemoryDesc& dst,
                     const std::vector<PostOp>& chain = {}) {
    SCOPED_TRACE(absl::StrCat(src.ToString(), " -> ", dst.ToString()));
    ForEachWeights([&] { ExpectMatchesInOneLayout(shape, src, dst, AttributesOf(chain)); });
  }
  void ExpectMatches(const Shape& shape, const std::vector<PostOp>& chain = {}) {
    ExpectMatches(shape, Plain(shape.src), Plain(shape.DstDims()), chain);
  }

 private:
  void ExpectMatchesInOneLayout(const Shape& shape, const MemoryDesc& src, const MemoryDesc& dst,
                                const Attributes& attributes) {
    const auto primitive = CreateFor(shape, src, dst, attributes);
    if (!primitive) return;
    const Contents contents = RandomContents(shape);
    const std::vector<float> result = Run(*primitive, contents);
    ASSERT_EQ(static_cast<int64_t>(result.size()), *ElementCount(shape.DstDims()));
    for (int64_t i = 0; i < static_cast<int64_t>(result.size()); ++i) {
      const Rounded expected = Expected(shape, contents, attributes.post_ops, i / shape.outputs,
                                        i % shape.outputs, LeftOut(GetParam()));
      ASSERT_NEAR(result[i], expected.value, expected.error) << "at element " << i;
    }
  }

  bool outputs_last_ = true;  // in plain weights
};

constexpr int64_t kOutputs[] = {1, 3, 15, 16, 17, 33, 64, 65, 130};

TEST_P(InnerProductTest, OutputsAroundVectorsAndBatchesAroundTiles) {
  for (int64_t outputs : kOutputs) {
    for (int64_t batch = 1; batch <= 8; ++batch) {
      for (bool bias : {false, true}) ExpectMatches({{batch, 37}, outputs, bias});
    }
  }
}

// One product, and odd and even numbers of them: there are two chains of sums.
TEST_P(InnerProductTest, FewAndManyProducts) {
  for (int64_t k : {1, 2, 3, 4, 1000, 4097}) ExpectMatches({{3, k}, 20});
}

// Where weights are plain: parts of K, and lanes of it that are added at the end.
TEST_P(InnerProductTest, ManyProductsOfBatchesAroundTiles) {
  for (int64_t k : {128, 131, 200}) {
    for (int64_t outputs : {1, 16, 33, 130}) {
      for (int64_t batch : {1, 2, 3, 4, 5, 9})
        ExpectMatches({{batch, k}, outputs}, {SumPostOp{}, EltwisePostOp{{Algorithm::kRelu}}});
    }
  }
  ExpectMatches({{1, 150}, 1100});
  ExpectMatches({{131, 150}, 70});
}

TEST_P(InnerProductTest, EveryLayoutOfTheSource) {
  for (Dims dims : ImageDims()) {
    dims[0] = 3;
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (int64_t outputs : {17, 65}) {
        ExpectMatches({dims, outputs}, layout.desc, Plain({3, outputs}));
      }
    }
  }
}

TEST_P(InnerProductTest, EveryLayoutOfTheDestination) {
  for (int64_t outputs : kOutputs) {
    const Shape shape{{5, 39}, outputs};
    for (const Layout& layout : LayoutsOf(shape.DstDims())) {
      SCOPED_TRACE(layout.why);
      ExpectMatches(shape, Plain(shape.src), layout.desc);
      ExpectMatches(shape, Plain(shape.src), layout.desc, {SumPostOp{}});
    }
  }
}

TEST_P(InnerProductTest, PostOpsInTheOrderOfTheChain) {
  for (const std::vector<PostOp>& chain : Chains()) {
    SCOPED_TRACE(AttributesOf(chain).post_ops.ToString());
    for (int64_t outputs : kOutputs) {
      for (int64_t batch : {1, 3, 8}) ExpectMatches({{batch, 41}, outputs}, chain);
    }
  }
}

// The fully connected layers of PaddlePaddle's own tests of MKL-DNN.
TEST_P(InnerProductTest, PaddleShapes) {
  for (const Shape& shape :
       {Shape{{2, 2, 1, 1}, 3}, Shape{{3, 7, 1, 1}, 19}, Shape{{8, 16, 13, 13}, 32},
        Shape{{4, 12, 13, 13}, 18}, Shape{{2, 64, 16, 16}, 32}, Shape{{15, 3, 16, 16}, 6}}) {
    for (bool bias : {false, true}) {
      Shape one = shape, single = shape;
      one.bias = single.bias = bias;
      single.src[0] = 1;
      ExpectMatches(one);
      ExpectMatches(single);
    }
  }
}

TEST_P(InnerProductTest, IsExactOnIntegers) {
  const Shape shape{{7, 20, 3, 6}, 130};
  const Attributes attributes = AttributesOf({SumPostOp{}});
  const Contents contents = IntegerContents(shape);
  for (const char* tag : {"nchw", "nhwc", "nChw16c", "nChw8c"}) {
    const MemoryDesc src = Tagged(shape.src, tag);
    if (ReadsPlainWeights(GetParam()) && !src.IsPlain()) continue;
    ForEachWeights([&] {
      const auto primitive = CreateFor(shape, src, Plain(shape.DstDims()), attributes);
      ASSERT_TRUE(primitive);
      const std::vector<float> result = Run(*primitive, contents);
      for (int64_t i = 0; i < static_cast<int64_t>(result.size()); ++i) {
        EXPECT_EQ(result[i],
                  Expected(shape, contents, attributes.post_ops, i / 130, i % 130, 0).value);
      }
    });
  }
}

// So many that generated code fetches weights ahead: up to the last group of outputs.
Shape ManyRows() { return {{74, 37}, 150}; }

TEST_P(InnerProductTest, ManyRowsOfFewAndManyProducts) {
  for (int64_t k : {1, 2, 3, 37, 500}) ExpectMatches({{73, k}, 150});
  ExpectMatches(ManyRows(), {SumPostOp{}, EltwisePostOp{{Algorithm::kTanh}}});
}

TEST_P(InnerProductTest, RowsDoNotDependOnTheBatch) {
  const Attributes attributes = AttributesOf({EltwisePostOp{{Algorithm::kTanh}}});
  std::vector<Shape> shapes = {ManyRows()};
  for (int64_t outputs : kOutputs) shapes.push_back({{8, 37}, outputs});
  for (int64_t outputs : kOutputs) shapes.push_back({{8, 200}, outputs});
  for (const Shape& many : shapes) {
    ForEachWeights([&] {
      const int64_t batch = many.src[0], k = many.src[1], outputs = many.outputs;
      const Shape one{{1, k}, outputs};
      const auto of_many = CreateFor(many, Plain(many.src), Plain(many.DstDims()), attributes);
      const auto of_one = CreateFor(one, Plain(one.src), Plain(one.DstDims()), attributes);
      ASSERT_EQ(of_many.has_value(), of_one.has_value()) << "the batch decides which row serves";
      if (!of_many) return;
      Contents contents = RandomContents(many);
      const std::vector<float> all = Run(*of_many, contents), src = contents.src;
      for (int64_t n = 0; n < batch; n += DivUp(batch, 8)) {
        contents.src.assign(src.begin() + n * k, src.begin() + (n + 1) * k);
        EXPECT_EQ(BitsOf(Run(*of_one, contents)),
                  BitsOf({all.begin() + n * outputs, all.begin() + (n + 1) * outputs}));
      }
    });
  }
}

// The row of an image with an infinity or NaN means what it means in f32, and the others keep their
// bits.
TEST_P(InnerProductTest, InfinitiesStayInTheirRows) {
  const Shape shape{{35, 70}, 40};
  const auto primitive = CreateFor(shape, Plain(shape.src), Plain(shape.DstDims()), {});
  ASSERT_TRUE(primitive);
  Contents contents = RandomContents(shape);
  const std::vector<float> before = Run(*primitive, contents);
  contents.src[2 * 70 + 3] = INFINITY;
  contents.src[33 * 70 + 69] = -INFINITY;
  contents.src[34 * 70 + 40] = NAN;
  const std::vector<float> after = Run(*primitive, contents);
  for (int64_t n = 0; n < 35; ++n) {
    for (int64_t o = 0; o < 40; ++o) {
      const float result = after[n * 40 + o];
      if (n == 34) {
        EXPECT_TRUE(std::isnan(result));
      } else if (n == 2 || n == 33) {
        const float weight = contents.weights[o * 70 + (n == 2 ? 3 : 69)];
        EXPECT_EQ(result, (weight > 0) == (n == 2) ? INFINITY : -INFINITY);
      } else {
        EXPECT_EQ(result, before[n * 40 + o]);
      }
    }
  }
}

// Weights that are split when a model is loaded, and those that are split in every run.
TEST_P(InnerProductTest, SplitWeightsGiveTheBitsOfWeightsThatAreSplitInEveryRun) {
  for (const Shape& shape : {Shape{{40, 70}, 33}, Shape{{3, 33, 2, 3}, 50}}) {
    const auto split = CreateFor(shape, Plain(shape.src), Plain(shape.DstDims()), {});
    if (!split || split->Desc(kArgWeights).format_kind() != FormatKind::kPlanes) return;
    InnerProductDesc desc{.src = Plain(shape.src), .dst = Plain(shape.DstDims())};
    desc.weights = split->Desc(kArgWeights).Unsplit();
    if (shape.bias) desc.bias = Plain({shape.outputs});
    const auto numbers = Create(desc);
    ASSERT_TRUE(numbers);
    const Contents contents = RandomContents(shape);
    EXPECT_EQ(Run(*split, contents), Run(*numbers, contents));
  }
}

TEST_P(InnerProductTest, LayoutsLeftOpenAreChosen) {
  if (GetParam().traits.runs_another || ReadsPlainWeights(GetParam()))
    GTEST_SKIP() << "is for layouts that are named";
  InnerProductDesc desc;
  desc.src = *MemoryDesc::CreateAny({2, 5, 3, 4}, DataType::kF32);
  desc.weights = *MemoryDesc::CreateAny({17, 5, 3, 4}, DataType::kF32);
  desc.bias = *MemoryDesc::CreateAny({17}, DataType::kF32);
  desc.dst = *MemoryDesc::CreateAny({2, 17}, DataType::kF32);
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  for (int arg : {kArgSrc, kArgWeights, kArgBias, kArgDst}) {
    EXPECT_FALSE(primitive->Desc(arg).IsAny()) << ArgName(arg);
  }
}

// Which row serves weights in a layout that a caller names.
TEST(InnerProductDispatchTest, PlainWeightsAreReadWhereTheyLie) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const auto row = [](const MemoryDesc& src, const std::string& weights,
                      Precision precision = Precision::kExact) {
    Dims dims = src.dims();
    dims[0] = 40;
    const InnerProductDesc desc{
        .src = src,
        .weights = *MemoryDesc::CreatePattern(dims, DataType::kF32, weights),
        .bias = {},
        .dst = Plain({src.dim(0), 40})};
    Attributes attributes;
    attributes.precision = precision;
    const auto primitive = CreateInnerProduct(desc, attributes, {.max_isa = cpu::Isa::kAvx2});
    return primitive.ok() ? std::string((*primitive)->name()) : primitive.status().ToString();
  };
  const std::string plain = "inner_product/avx2_f32_plain_weights";
  const std::string reordered = "inner_product/reordered";
  EXPECT_EQ(row(Plain({1, 200}), "ba"), plain);
  EXPECT_EQ(row(Plain({1, 200}), "ab"), plain);
  EXPECT_EQ(row(Plain({3, 20}), "ba"), plain);
  const Dims images = {2, 17, 5, 3};
  EXPECT_EQ(row(Tagged(images, "nchw"), "abcd"), plain);
  EXPECT_EQ(row(Tagged(images, "nchw"), "bcda"), plain);
  EXPECT_EQ(row(Tagged(images, "nhwc"), "acdb"), plain);
  EXPECT_EQ(row(Tagged(images, "nhwc"), "cdba"), plain);
  EXPECT_EQ(row(Tagged(images, "nhwc"), "abcd"), reordered) << "inputs in another order";
  EXPECT_EQ(row(Tagged(images, "nChw8c"), "bcda"), reordered) << "src has blocks";
  EXPECT_EQ(row(Plain({1, 200}), "ba", Precision::kBf16), reordered) << "may be faster";
}

TEST(InnerProductDispatchTest, TensorsWithoutElementsAreComputed) {
  const auto result = [](const InnerProductDesc& desc) {
    const auto primitive = CreateInnerProduct(desc, {}, {});
    EXPECT_THAT(primitive, IsOk());
    const MemoryDesc& weights_desc = (*primitive)->Desc(kArgWeights);
    const Bytes weights = Pack(weights_desc, RandomFloats(weights_desc.ElementCount(), 1));
    const Bytes bias = Pack<float>(Plain({2}), {3, 4});
    return Unpack<float>(desc.dst,
                         Execute(**primitive, {{kArgWeights, &weights}, {kArgBias, &bias}}, kArgDst,
                                 Garbage(desc.dst, 7), threading::Team::Serial()));
  };
  EXPECT_EQ(result({.src = Plain({2, 0}),
                    .weights = Plain({2, 0}),
                    .bias = Plain({2}),
                    .dst = Plain({2, 2})}),
            (std::vector<float>{3, 4, 3, 4}));
  EXPECT_EQ(result({.src = Plain({0, 5}),
                    .weights = *MemoryDesc::CreateAny({2, 5}, DataType::kF32),
                    .bias = Plain({2}),
                    .dst = Plain({0, 2})}),
            std::vector<float>());
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, InnerProductTest,
                         ::testing::ValuesIn(FloatRows(InnerProductImplementations())),
                         RowName<Implementation<InnerProductDesc>>);

TEST(InnerProductErrorsTest, CreationNamesWhatDoesNotFit) {
  const InnerProductDesc good{
      .src = Plain({2, 5}), .weights = Plain({3, 5}), .bias = Plain({3}), .dst = Plain({2, 3})};
  const auto with = [&](MemoryDesc InnerProductDesc::*field, const MemoryDesc& md) {
    InnerProductDesc desc = good;
    desc.*field = md;
    return CreateInnerProduct(desc, {}, {}).status();
  };
  EXPECT_THAT(CreateInnerProduct(good, {}, {}), IsOk());
  EXPECT_THAT(with(&InnerProductDesc::src, Plain({5})), StatusIs(kInvalid, "rank 2 to 5"));
  EXPECT_THAT(with(&InnerProductDesc::src, MemoryDesc()), StatusIs(kInvalid, "rank 2 to 5"));
  EXPECT_THAT(with(&InnerProductDesc::weights, Plain({3, 5, 1})),
              StatusIs(kInvalid, "differ in rank"));
  EXPECT_THAT(with(&InnerProductDesc::weights, Plain({3, 6})),
              StatusIs(kInvalid, "dimension 1 of src and weights differs"));
  EXPECT_THAT(with(&InnerProductDesc::dst, Plain({2, 4})), StatusIs(kInvalid, "dst is not [N,O]"));
  EXPECT_THAT(with(&InnerProductDesc::dst, Plain({3, 3})), StatusIs(kInvalid, "dst is not [N,O]"));
  EXPECT_THAT(with(&InnerProductDesc::bias, Plain({2})), StatusIs(kInvalid, "bias is not [O]"));
  EXPECT_THAT(
      with(&InnerProductDesc::dst, *MemoryDesc::CreateStrided({2, 3}, DataType::kF32, {1, 1})),
      StatusIs(kInvalid, "overlap"));
  EXPECT_THAT(with(&InnerProductDesc::src, Plain({2, 5}, DataType::kU8)),
              StatusIs(kUnimplemented, "u8"));
  InnerProductDesc backward = good;
  backward.prop_kind = PropKind::kBackward;
  EXPECT_THAT(CreateInnerProduct(backward, {}, {}),
              StatusIs(kUnimplemented, "does not run backward"));
  Attributes scaled;
  scaled.output_scales.scales = {2.0f};
  EXPECT_THAT(CreateInnerProduct(good, scaled, {}), StatusIs(kUnimplemented, "output scales"));
  EXPECT_THAT(CreateInnerProduct(good, {}, {.only = "inner_product/gpu"}),
              StatusIs(kInvalid, "no implementation 'inner_product/gpu'"));
}

}  // namespace
}  // namespace tilewire::testing
