// SPDX-License-Identifier: Apache-2.0
//
// Relu and the addend of batch normalization for training: every row gives the bits of the same row
// without them and of plain loops after it, and the workspace is as its format says, so that any
// forward row may be followed by any backward one.
#include <algorithm>
#include <limits>

#include "engine/primitives/batch_normalization/batch_normalization.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr float kNoLimit = std::numeric_limits<float>::infinity();

// The operations that follow the normalization.
struct Afterwards {
  const char* why;
  bool relu, addend;
  float limit = kNoLimit;
};
constexpr Afterwards kAfterwards[] = {{"relu alone", true, false},
                                      {"a limit", true, false, 0.75f},
                                      {"the end of a residual block", true, true},
                                      {"one with a limit", true, true, 0.75f}};
constexpr Afterwards kAddendAlone = {"an addend alone", false, true};  // forward only

// Blocks that channels fill and that they do not, half of the last 16 and less; one pixel, an odd
// number and several pieces of them; one image and several.
const Dims kReluDims[] = {{8, 24},      {1, 8, 5, 7},     {3, 17, 3, 5},  {2, 48, 3},
                          {1, 3, 1, 1}, {3, 40, 2, 2, 2}, {2, 24, 17, 33}};

// Tensors of one problem in row-major order; weights are scale and shift.
struct ReluOperands {
  std::vector<float> x, addend, dy, mean, variance, weights;
};

ReluOperands ReluOperandsOf(const Dims& dims) {
  const int64_t count = *ElementCount(dims), channels = dims[1];
  return {RandomFloats(count, 1, -2, 2),      RandomFloats(count, 2, -1, 1),
          RandomFloats(count, 3, -1, 1),      RandomFloats(channels, 4, -0.5f, 0.5f),
          RandomFloats(channels, 5, 0.5f, 2), RandomFloats(2 * channels, 6, -1.5f, 1.5f)};
}

// The workspace of a tensor of these dims, where `passes` has one entry per element.
Bytes PassedBits(const Dims& dims, const std::vector<bool>& passes) {
  const int64_t channels = dims[1], pixels = *ElementCount(dims) / channels;
  const int64_t of_image = pixels / dims[0];
  Bytes bits((channels + 15) / 16 * pixels * 2, 0);
  for (size_t i = 0; i < passes.size(); ++i) {
    const int64_t image = static_cast<int64_t>(i) / (of_image * channels);
    const int64_t c = static_cast<int64_t>(i) / of_image % channels;
    const int64_t pixel = image * of_image + static_cast<int64_t>(i) % of_image;
    const int64_t byte = (c / 16 * pixels + pixel) * 2 + c % 16 / 8;
    if (passes[i]) bits[byte] |= static_cast<uint8_t>(1 << c % 8);
  }
  return bits;
}

BatchNormalizationDesc ReluDescOf(PropKind prop_kind, const MemoryDesc& md, bool global,
                                  const Afterwards& after) {
  BatchNormalizationDesc desc{prop_kind, md, md, 1e-3f};
  desc.use_global_stats = global;
  desc.fuse_relu = after.relu;
  if (after.addend) desc.addend = md;
  desc.relu_limit = after.limit;
  if (!IsBackward(prop_kind)) return desc;
  desc.dst = MemoryDesc();
  desc.diff_src = desc.diff_dst = md;
  return desc;
}

// The workspace of forward training.
MemoryDesc PassedWorkspace(const MemoryDesc& md) {
  const auto forward = CreateBatchNormalization(
      ReluDescOf(PropKind::kForwardTraining, md, false, kAfterwards[0]), {}, {});
  EXPECT_THAT(forward, IsOk());
  return forward.ok() ? (*forward)->Desc(kArgWorkspace) : MemoryDesc();
}

class BatchNormalizationReluTest : public RowTest<BatchNormalizationDesc> {
 protected:
  BatchNormalizationReluTest() : RowTest(CreateBatchNormalization) {}

  struct Forward {
    std::vector<float> dst;
    Bytes bits;
  };
  static Forward Run(const Created& primitive, const BatchNormalizationDesc& desc,
                     const ReluOperands& operands) {
    const MemoryDesc channel = Plain({desc.src.dim(1)}), pairs = Plain({2, desc.src.dim(1)});
    const Bytes src = Pack(desc.src, operands.x), addend = Pack(desc.src, operands.addend);
    const Bytes weights = Pack(pairs, operands.weights);
    Bytes mean = Pack(channel, operands.mean), variance = Pack(channel, operands.variance);
    Forward forward;
    forward.bits = Garbage(primitive.Desc(kArgWorkspace), 3);
    const Inputs inputs = {{kArgSrc, &src},         {kArgSrc1, &addend},
                           {kArgMean, &mean},       {kArgVariance, &variance},
                           {kArgWeights, &weights}, {kArgWorkspace, &forward.bits}};
    forward.dst =
        Unpack<float>(desc.dst, ExecuteAllWays(primitive, inputs, kArgDst, Garbage(desc.dst, 7)));
    return forward;
  }

  void ExpectSteps(const MemoryDesc& md, bool global, const Afterwards& after) {
    SCOPED_TRACE(absl::StrCat(md.ToString(), " global ", global, " ", after.why));
    const BatchNormalizationDesc alone =
        ReluDescOf(PropKind::kForwardTraining, md, global, {"alone", false, false});
    const BatchNormalizationDesc fused = ReluDescOf(PropKind::kForwardTraining, md, global, after);
    const auto steps = Create(alone), one = Create(fused);
    if (!steps || !one) return;
    const ReluOperands operands = ReluOperandsOf(md.dims());
    Forward want = Run(*steps, alone, operands);
    const Forward found = Run(*one, fused, operands);
    std::vector<bool> passes;
    for (size_t i = 0; i < want.dst.size(); ++i) {
      float& y = want.dst[i];
      if (after.addend) y += operands.addend[i];
      if (!after.relu) continue;
      passes.push_back(y > 0 && y < after.limit);
      y = std::min(std::max(y, 0.0f), after.limit);
    }
    EXPECT_EQ(found.dst, want.dst);
    if (after.relu) {
      EXPECT_EQ(found.bits, PassedBits(md.dims(), passes));
    }
  }
};

TEST_P(BatchNormalizationReluTest, GivesTheBitsOfStepsAndSavesWhatPassed) {
  for (const Dims& dims : kReluDims) {
    for (const Layout& layout : LayoutsOf(dims)) {
      for (const Afterwards& after : kAfterwards) {
        for (bool global : {false, true}) ExpectSteps(layout.desc, global, after);
      }
      for (bool global : {false, true}) ExpectSteps(layout.desc, global, kAddendAlone);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, BatchNormalizationReluTest,
                         ::testing::ValuesIn(RowsThatRun({PropKind::kForwardTraining},
                                                         BatchNormalizationImplementations())),
                         RowName<Implementation<BatchNormalizationDesc>>);

class BatchNormalizationReluGradientTest : public RowTest<BatchNormalizationDesc> {
 protected:
  BatchNormalizationReluGradientTest() : RowTest(CreateBatchNormalization) {}

  struct Gradients {
    std::vector<float> src, weights, addend;
  };
  // `over`: the gradient of the addend is written over dy.
  static Gradients Run(const Created& primitive, const BatchNormalizationDesc& desc,
                       const ReluOperands& operands, const Bytes& bits, bool over) {
    const MemoryDesc channel = Plain({desc.src.dim(1)}), pairs = Plain({2, desc.src.dim(1)});
    const Bytes src = Pack(desc.src, operands.x), weights = Pack(pairs, operands.weights);
    const Bytes mean = Pack(channel, operands.mean), variance = Pack(channel, operands.variance);
    Bytes dy = Pack(desc.src, operands.dy), of_addend = Garbage(desc.src, 5);
    Bytes dw = Garbage(pairs, 7);
    Bytes& addend = over ? dy : of_addend;
    Inputs inputs = {{kArgSrc, &src},         {kArgMean, &mean},      {kArgVariance, &variance},
                     {kArgWeights, &weights}, {kArgWorkspace, &bits}, {kArgDiffDst, &dy},
                     {kArgDiffWeights, &dw},  {kArgDiffSrc1, &addend}};
    const auto team = threading::Team::Serial();
    const Bytes dx = Execute(*primitive.library, inputs, kArgDiffSrc, Garbage(desc.src, 9), team);
    return {Unpack<float>(desc.src, dx), Unpack<float>(pairs, dw), Unpack<float>(desc.src, addend)};
  }

  void ExpectMasked(PropKind kind, const MemoryDesc& md, bool global, const Afterwards& after) {
    SCOPED_TRACE(
        absl::StrCat(PropKindName(kind), " ", md.ToString(), " global ", global, " ", after.why));
    const BatchNormalizationDesc alone = ReluDescOf(kind, md, global, {"alone", false, false});
    BatchNormalizationDesc fused = ReluDescOf(kind, md, global, after);
    fused.workspace = PassedWorkspace(md);
    const auto steps = Create(alone), one = Create(fused);
    if (!steps || !one) return;
    ReluOperands operands = ReluOperandsOf(md.dims());
    std::vector<bool> passes;
    for (float number : RandomFloats(md.ElementCount(), 11, -1, 1)) passes.push_back(number > 0);
    const Bytes bits = PassedBits(md.dims(), passes);
    const Gradients found = Run(*one, fused, operands, bits, false);
    const Gradients over = Run(*one, fused, operands, bits, after.addend);
    for (size_t i = 0; i < passes.size(); ++i) operands.dy[i] *= passes[i] ? 1.0f : 0.0f;
    const Gradients want = Run(*steps, alone, operands, bits, false);
    EXPECT_EQ(found.src, want.src);
    EXPECT_EQ(over.src, want.src);
    if (after.addend) {
      EXPECT_EQ(found.addend, operands.dy);
      EXPECT_EQ(over.addend, operands.dy);
    }
    if (kind != PropKind::kBackward) return;
    EXPECT_EQ(found.weights, want.weights);
    EXPECT_EQ(over.weights, want.weights);
  }
};

TEST_P(BatchNormalizationReluGradientTest, GivesTheBitsOfSteps) {
  for (const Dims& dims : kReluDims) {
    for (const Layout& layout : LayoutsOf(dims)) {
      for (const Afterwards& after : kAfterwards) {
        for (bool global : {false, true}) {
          ExpectMasked(PropKind::kBackward, layout.desc, global, after);
          ExpectMasked(PropKind::kBackwardData, layout.desc, global, after);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, BatchNormalizationReluGradientTest,
                         ::testing::ValuesIn(RowsThatRun({PropKind::kBackward},
                                                         BatchNormalizationImplementations())),
                         RowName<Implementation<BatchNormalizationDesc>>);

TEST(BatchNormalizationReluErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateBatchNormalization);
  const MemoryDesc md = Plain({2, 4, 3, 3});
  const Afterwards both = kAfterwards[2];
  BatchNormalizationDesc inference = ReluDescOf(PropKind::kForwardInference, md, true, both);
  EXPECT_THAT(status(inference), StatusIs(kInvalid, "addend"));
  BatchNormalizationDesc other = ReluDescOf(PropKind::kForwardTraining, md, false, both);
  other.addend = Plain({2, 4, 3, 5});
  EXPECT_THAT(status(other), StatusIs(kInvalid, "addend"));
  BatchNormalizationDesc without_relu = ReluDescOf(PropKind::kBackward, md, false, both);
  without_relu.fuse_relu = false;
  EXPECT_THAT(status(without_relu), StatusIs(kInvalid, "addend"));
  BatchNormalizationDesc limit = ReluDescOf(PropKind::kForwardTraining, md, false, kAfterwards[0]);
  for (float wrong : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    limit.relu_limit = wrong;
    EXPECT_THAT(status(limit), StatusIs(kInvalid, "relu_limit"));
  }
}

}  // namespace
}  // namespace tilewire::testing
