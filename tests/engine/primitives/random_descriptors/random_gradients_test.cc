// SPDX-License-Identifier: Apache-2.0
//
// Creates and executes random descriptors of what training runs: gradients, forward for training,
// losses. Each is refused with a message, or comes to what its reference comes to: so nearly that a
// wrong element shows, since how nearly is what tests of the rows ask. Settings are those of
// random_cases.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "engine/memory/layout.h"
#include "engine/primitive_engine.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/random_descriptors/random_cases.h"
#include "tests/engine/primitives/random_descriptors/random_gradient.h"

namespace tilewire::testing {
namespace {

enum class Values { kIntegers, kReals, kBytes };  // small ones, and anything

// Row-major, but for what has no such layout.
MemoryDesc GivenLayout(const MemoryDesc& own) {
  if (own.format_kind() == FormatKind::kWorkspace) return own;
  return *MemoryDesc::CreatePattern(own.dims(), own.data_type(), PlainPattern(own.rank()));
}

// The bytes of every argument that is read.
struct Operand {
  int arg;
  MemoryDesc desc;
  std::string bytes;
};

std::string BytesOf(Random& random, PrimitiveKind kind, const ArgDesc& arg, const MemoryDesc& desc,
                    Values values) {
  std::string bytes(static_cast<size_t>(desc.SizeBytes()), '\0');
  if (values == Values::kBytes) {
    for (char& byte : bytes) byte = static_cast<char>(random.Next());
    return bytes;
  }
  const bool is_portion = kind == PrimitiveKind::kLoss && arg.arg == kArgSrc1;
  const int64_t step = SizeOf(desc.data_type());
  for (int64_t i = 0; i < desc.SizeBytes(); i += step) {
    if (desc.data_type() != DataType::kF32) {
      bytes[i] = static_cast<char>(random.Integer(0, 3));  // little-endian
      continue;
    }
    float value = values == Values::kIntegers ? static_cast<float>(random.Integer(-3, 3))
                                              : random.Uniform(-1, 1);
    if (arg.arg == kArgVariance) value = random.Uniform(0.1f, 2);
    if (is_portion) value = random.Uniform(0, 1);
    std::memcpy(&bytes[i], &value, sizeof value);
  }
  return bytes;
}

class RandomGradientsTest : public RandomCasesTest {
 protected:
  RandomGradientsTest() : RandomCasesTest("random gradient", 5000, 1e5) {}

  void RunCase(Random& random) {
    const absl::StatusOr<RandomGradientCase> test = RandomGradient(random);
    if (!test.ok()) return CountRefusal(test.status(), "refused as a tensor");
    Try(random, *test, [&](PrimitiveEngine& engine, const Primitive& primitive) {
      Execute(random, engine, primitive, *test);
    });
  }

  void Execute(Random& random, PrimitiveEngine& engine, const Primitive& primitive,
               const RandomGradientCase& test) {
    SCOPED_TRACE(primitive.name());
    const Values values = Pick(random, {Values::kIntegers, Values::kIntegers, Values::kIntegers,
                                        Values::kReals, Values::kReals, Values::kBytes});
    std::vector<Operand> operands;
    for (const ArgDesc& arg : primitive.info().args) {
      if (arg.is_output && !primitive.info().reads_destination) continue;
      const MemoryDesc desc = GivenLayout(arg.desc);
      operands.push_back({arg.arg, desc, BytesOf(random, primitive.kind(), arg, desc, values)});
    }
    const auto outputs = Run(engine, primitive, operands);
    if (!outputs.ok()) return CountRefusal(outputs.status(), "created, its execution refused");
    Count("executed");
    executed_.insert(std::string(primitive.name()));
    if (values == Values::kBytes || !test.is_comparable || primitive.info().traits.is_reference)
      return;
    const auto reference =
        CreatePrimitive(test.desc, test.attributes, {.only = {}, .reference_only = true});
    if (!reference.ok()) return;
    const auto expected = Run(engine, **reference, operands);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_EQ(outputs->size(), expected->size());
    for (size_t i = 0; i < outputs->size(); ++i) ExpectAlike((*outputs)[i], (*expected)[i]);
    Count("compared with its reference");
  }

  static absl::StatusOr<std::vector<PrimitiveOutput>> Run(PrimitiveEngine& engine,
                                                          const Primitive& primitive,
                                                          const std::vector<Operand>& operands) {
    std::vector<PrimitiveInput> inputs;
    std::vector<PrimitiveOutput> outputs;
    for (const Operand& operand : operands)
      inputs.push_back({operand.arg, operand.desc, {operand.bytes}});
    for (const ArgDesc& arg : primitive.info().args) {
      if (arg.is_output) outputs.push_back({arg.arg, GivenLayout(arg.desc), {}});
    }
    RunOptions limits;
    limits.max_output_bytes = static_cast<int64_t>(kMostExecutedBytes);
    const auto times = engine.ExecutePrimitive(primitive, inputs, absl::MakeSpan(outputs), limits);
    if (!times.ok()) return times.status();
    return outputs;
  }

  // Results of f32; what the reference has no finite number for is left out.
  static void ExpectAlike(const PrimitiveOutput& found, const PrimitiveOutput& expected) {
    constexpr double kTolerance = 2e-3, kLeastScale = 4;
    ASSERT_EQ(found.arg, expected.arg);
    if (found.desc.data_type() != DataType::kF32) return;
    ASSERT_EQ(found.desc, expected.desc);
    const auto* const ours = reinterpret_cast<const float*>(found.bytes.data());
    const auto* const theirs = reinterpret_cast<const float*>(expected.bytes.data());
    const int64_t count = found.desc.ElementCount();
    double scale = kLeastScale;
    for (int64_t i = 0; i < count; ++i) {
      if (std::isfinite(theirs[i])) scale = std::max<double>(scale, std::abs(theirs[i]));
    }
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(theirs[i])) continue;
      ASSERT_LE(std::abs(ours[i] - theirs[i]), kTolerance * scale)
          << ArgName(found.arg) << " " << i << " is " << ours[i] << ", the reference's "
          << theirs[i];
    }
  }

  std::set<std::string> executed_;
};

TEST_F(RandomGradientsTest, AreRefusedOrComeToWhatReferencesComeTo) {
  RunCases(0x6ad1e47, [this](Random& random) { RunCase(random); });
  if (HasFailure() || cases() < 5000) return;
  // A generator that makes nothing but refusals tests nothing.
  EXPECT_GT(CountOf("executed"), cases() / 5);
  EXPECT_GT(CountOf("compared with its reference"), cases() / 20);
  EXPECT_GT(CountOf("refused as invalid"), cases() / 50);
  EXPECT_GE(executed_.size(), 30);
}

}  // namespace
}  // namespace tilewire::testing
