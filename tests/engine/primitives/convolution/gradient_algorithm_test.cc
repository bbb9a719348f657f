// SPDX-License-Identifier: Apache-2.0
//
// The algorithm that a descriptor asks for, in gradients: it runs, or is refused.
#include <optional>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/primitives/convolution/convolution.h"
#include "tests/engine/primitives/batched_gradient_test.h"
#include "tests/engine/primitives/convolution/convolution_cases.h"

namespace tilewire::testing {
namespace {

// The gradient of src by one algorithm, of random tensors in layouts of the primitive's choice.
struct ByAlgorithm {
  bool bits_depend_on_position;
  std::vector<float> diff_src;
};
std::optional<ByAlgorithm> GradientBy(ConvolutionAlgorithm algorithm, cpu::Isa isa) {
  const ConvolutionCase shape = Case("3x3", {2, 33, 12, 13}, 40, {3, 3}, {.left = {1, 1}});
  ConvolutionDesc desc = Backward(DescOf(shape), PropKind::kBackwardData);
  desc.algorithm = algorithm;
  const auto primitive = CreateConvolution(desc, {}, {.max_isa = isa});
  EXPECT_THAT(primitive, IsOk());
  if (!primitive.ok()) return std::nullopt;
  const MemoryDesc& weights = (*primitive)->Desc(kArgWeights);
  const MemoryDesc& diff_dst = (*primitive)->Desc(kArgDiffDst);
  const MemoryDesc& diff_src = (*primitive)->Desc(kArgDiffSrc);
  const Bytes w = Pack(weights, RandomFloats(weights.ElementCount(), 1, -1, 1));
  const Bytes dy = Pack(diff_dst, RandomFloats(diff_dst.ElementCount(), 2, -1, 1));
  const Bytes dx = Execute(**primitive, {{kArgWeights, &w}, {kArgDiffDst, &dy}}, kArgDiffSrc,
                           Garbage(diff_src, 7), threading::Team::Serial());
  return ByAlgorithm{(*primitive)->info().traits.bits_depend_on_position,
                     Unpack<float>(diff_src, dx)};
}

TEST(ConvolutionGradientAlgorithmTest, WinogradsRunsWhereItIsAskedFor) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512, cpu::Isa::kAmx}) {
    if (!cpu::Supports(isa)) continue;
    SCOPED_TRACE(cpu::IsaName(isa));
    const auto direct = GradientBy(ConvolutionAlgorithm::kDirect, isa);
    const auto winograd = GradientBy(ConvolutionAlgorithm::kWinograd, isa);
    ASSERT_TRUE(direct && winograd);
    EXPECT_FALSE(direct->bits_depend_on_position);
    EXPECT_TRUE(winograd->bits_depend_on_position);
    EXPECT_NE(BitsOf(direct->diff_src), BitsOf(winograd->diff_src));
    double error = 0, size = 0;
    for (size_t i = 0; i < direct->diff_src.size(); ++i) {
      const double expected = direct->diff_src[i], difference = winograd->diff_src[i] - expected;
      error += difference * difference;
      size += expected * expected;
    }
    EXPECT_LT(error, 1e-10 * size);
  }
}

TEST(ConvolutionGradientAlgorithmTest, WinogradsIsRefusedWhereThereIsNone) {
  const auto status = [](const ConvolutionCase& shape, PropKind kind) {
    ConvolutionDesc desc = Backward(DescOf(shape), kind);
    desc.algorithm = ConvolutionAlgorithm::kWinograd;
    return CreateConvolution(desc, {}, {}).status();
  };
  const auto refused = StatusIs(kUnimplemented, "allowed are auto and direct");
  const auto of_other_windows = StatusIs(kUnimplemented, "the algorithm is auto or direct");
  EXPECT_THAT(status(Case("3x3", {1, 16, 9, 9}, 16, {3, 3}), PropKind::kBackwardWeights), refused);
  const ConvolutionCase others[] = {
      Case("1x1", {1, 16, 9, 9}, 16, {1, 1}),
      Case("strided", {1, 16, 9, 9}, 16, {3, 3}, {.strides = {2, 2}}),
      Case("dilated", {1, 16, 9, 9}, 16, {3, 3}, {.dilations = {1, 1}}),
      Case("groups", {1, 32, 9, 9}, 32, {3, 3}, {.groups = 2}),
      Case("a line", {1, 16, 9}, 16, {3}),
      Case("a volume", {1, 16, 5, 5, 5}, 16, {3, 3, 3}),
  };
  for (const ConvolutionCase& shape : others)
    EXPECT_THAT(status(shape, PropKind::kBackwardData), of_other_windows) << shape.why;
}

}  // namespace
}  // namespace tilewire::testing
