// SPDX-License-Identifier: Apache-2.0
//
// Creates and executes random descriptors of all primitives through the engine's door, as clients
// of PrimitiveService can. Whatever a descriptor says, it is taken or refused with a status:
// nothing crashes, hangs or uses more memory than its tensors account for. Settings are those of
// random_cases.h.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/primitive_engine.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/random_descriptors/random_cases.h"
#include "tests/engine/primitives/random_descriptors/random_descriptor.h"
#include "tests/engine/primitives/random_descriptors/random_layout.h"

namespace tilewire::testing {
namespace {

class RandomDescriptorsTest : public RandomCasesTest {
 protected:
  RandomDescriptorsTest() : RandomCasesTest("random descriptor", 6000, 3e5) {
    Random random(1);
    bytes_.resize(static_cast<size_t>(2 * kMostExecutedBytes) / 8);
    for (uint64_t& word : bytes_) word = random.Next();
  }

  void RunCase(Random& random) {
    const absl::StatusOr<RandomCase> test = RandomDescriptor(random);
    if (!test.ok()) return CountRefusal(test.status(), "refused as a tensor");
    Try(random, *test, [&](PrimitiveEngine& engine, const Primitive& primitive) {
      Execute(random, engine, primitive);
    });
  }

  // Gives every argument some bytes in some layout and takes the outputs in some layout.
  void Execute(Random& random, PrimitiveEngine& engine, const Primitive& primitive) {
    std::vector<PrimitiveInput> inputs;
    std::vector<PrimitiveOutput> outputs;
    for (const ArgDesc& arg : primitive.info().args) {
      if (arg.is_output) outputs.push_back({arg.arg, OtherLayout(random, arg.desc), {}});
      if (arg.is_output && !primitive.info().reads_destination) continue;
      const MemoryDesc given = OtherLayout(random, arg.desc);
      inputs.push_back({arg.arg, given, {Bytes(random, given.SizeBytes())}});
    }
    RunOptions limits;
    limits.max_output_bytes = static_cast<int64_t>(kMostExecutedBytes);
    const auto times = engine.ExecutePrimitive(primitive, inputs, absl::MakeSpan(outputs), limits);
    if (!times.ok()) return CountRefusal(times.status(), "created, its execution refused");
    Count("executed");
    executed_.insert(std::string(primitive.name()));
  }

  // The primitive's own layout, or another one whose bytes stay within bounds.
  static MemoryDesc OtherLayout(Random& random, const MemoryDesc& own) {
    const bool opaque = own.format_kind() != FormatKind::kBlocked || own.extra().flags != 0;
    if (!opaque && Chance(random, 50)) return own;
    const LayoutChoice choice = opaque ? LayoutChoice::kPlain : RandomLayoutChoice(random);
    if (choice == LayoutChoice::kAny) return own;
    const auto other = RandomLayout(own.dims(), own.data_type(), choice, random.Next());
    if (!other.ok() || other->SizeBytes() > kMostExecutedBytes) return own;
    return *other;
  }

  absl::string_view Bytes(Random& random, int64_t size) const {
    const int64_t slack = static_cast<int64_t>(bytes_.size()) * 8 - size;
    return {reinterpret_cast<const char*>(bytes_.data()) + 8 * random.Integer(0, slack / 8),
            static_cast<size_t>(size)};
  }

  std::vector<uint64_t> bytes_;
  std::set<std::string> executed_;
};

TEST_F(RandomDescriptorsTest, AreTakenOrRefusedAndNeverCrash) {
  RunCases(0x7117e81e, [this](Random& random) { RunCase(random); });
  if (HasFailure() || cases() < 5000) return;
  // A generator that makes nothing but refusals tests nothing.
  EXPECT_GT(CountOf("executed"), cases() / 6);
  EXPECT_GT(CountOf("refused as invalid"), cases() / 50);
  EXPECT_GE(executed_.size(), 30);
}

}  // namespace
}  // namespace tilewire::testing
