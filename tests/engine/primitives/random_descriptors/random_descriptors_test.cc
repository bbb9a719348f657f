// SPDX-License-Identifier: Apache-2.0
//
// Creates and executes random descriptors of all primitives through the engine's door, as clients
// of PrimitiveService can. Whatever a descriptor says, it is taken or refused with a status:
// nothing crashes, hangs or uses more memory than its tensors account for.
//
//   TILEWIRE_DESCRIPTORS        how many (default 6000)
//   TILEWIRE_FIRST_DESCRIPTOR   the first one (default 0); a case depends on its number alone
//   TILEWIRE_MOST_OPERATIONS    larger ones are created and not executed (default 3e5)
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "engine/primitive_engine.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/random_descriptors/random_descriptor.h"
#include "tests/engine/primitives/random_descriptors/random_layout.h"
#include "tests/support/crash_note.h"

namespace tilewire::testing {
namespace {

constexpr double kMostTensorBytes = 512 << 20;   // the service's bound for messages of 64 MB
constexpr double kMostExecutedBytes = 64 << 20;  // of all tensors
constexpr int64_t kMostResidentKb = 3 << 20;     // several tensors of the service's bound at once
constexpr unsigned kMostSeconds = 60;            // of a case that computes without end
constexpr double kMostProcessorSeconds = 20;     // of a case: tables of 512 MB are made in a few

double Setting(const char* name, double fallback) {
  const char* text = std::getenv(name);
  double value = fallback;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtod(text, &value)) << name << "=" << text;
  }
  return value;
}

double ProcessorSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int64_t PeakResidentKb() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsUnimplemented(status) ||
         absl::IsResourceExhausted(status);
}

std::string TextOf(const RandomCase& test) {
  std::string text = std::string(PrimitiveKindName(KindOf(test.desc)));
  for (const MemoryDesc* tensor : TensorsOf(test.desc)) {
    absl::StrAppend(&text, " ", tensor->ToString());
  }
  return absl::StrCat(text, " ", test.attributes.ToString());
}

class RandomDescriptorsTest : public ::testing::Test {
 protected:
  // The best instruction set of this machine, and those below it.
  void SetUp() override {
    InstallCrashNote("random descriptor");
    for (const cpu::Isa isa : {cpu::BestIsa(), cpu::Isa::kAvx2, cpu::Isa::kBaseline}) {
      if (!cpu::Supports(isa)) continue;
      EngineOptions options;
      options.max_isa = isa;
      options.threads = 1;
      options.primitive_cache_bytes = 8 << 20;
      engines_.push_back(Engine::Create(options).value());
    }
    Random random(1);
    bytes_.resize(static_cast<size_t>(2 * kMostExecutedBytes) / 8);
    for (uint64_t& word : bytes_) word = random.Next();
  }

  void RunCase(int64_t index, double most_operations) {
    Random random(0x7117e81e + static_cast<uint64_t>(index) * 0x9e3779b9);
    const absl::StatusOr<RandomCase> test = RandomDescriptor(random);
    if (!test.ok()) {
      EXPECT_TRUE(IsRefusal(test.status())) << test.status();
      ++counts_["refused as a tensor"];
      return;
    }
    if (DescribedBytes(test->desc) > kMostTensorBytes) {
      ++counts_["too large for the service"];
      return;
    }
    SCOPED_TRACE(TextOf(*test));
    PrimitiveEngine& engine =
        engines_[Chance(random, 60) ? 0 : random.Integer(0, engines_.size() - 1)]->primitives();
    const auto found = engine.GetPrimitive(test->desc, test->attributes);
    if (!found.ok()) {
      EXPECT_TRUE(IsRefusal(found.status())) << found.status();
      ++counts_[absl::IsUnimplemented(found.status()) ? "refused by every implementation"
                                                      : "refused as invalid"];
      return;
    }
    const PrimitiveInfo& info = found->primitive->info();
    EXPECT_GE(info.scratchpad_bytes, 0);
    double bytes = static_cast<double>(info.scratchpad_bytes);
    for (const ArgDesc& arg : info.args) bytes += static_cast<double>(arg.desc.SizeBytes());
    if (bytes > kMostExecutedBytes || Operations(test->desc) > most_operations) {
      ++counts_["created"];
      return;
    }
    Execute(random, engine, *found->primitive);
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
    EXPECT_TRUE(times.ok() || IsRefusal(times.status())) << times.status();
    ++counts_[times.ok() ? "executed" : "created, its execution refused"];
    ++(times.ok() ? executed_ : refused_executions_)[std::string(primitive.name())];
  }

  // The primitive's own layout, or another one whose bytes stay within bounds.
  static MemoryDesc OtherLayout(Random& random, const MemoryDesc& own) {
    const bool opaque = own.format_kind() != FormatKind::kBlocked || own.HasCompensation();
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

  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<uint64_t> bytes_;
  std::map<std::string, int64_t> counts_, executed_, refused_executions_;
};

TEST_F(RandomDescriptorsTest, AreTakenOrRefusedAndNeverCrash) {
  const auto count = static_cast<int64_t>(Setting("TILEWIRE_DESCRIPTORS", 6000));
  const auto first = static_cast<int64_t>(Setting("TILEWIRE_FIRST_DESCRIPTOR", 0));
  const double most_operations = Setting("TILEWIRE_MOST_OPERATIONS", 3e5);
  for (int64_t i = first; i < first + count && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("TILEWIRE_FIRST_DESCRIPTOR=", i));
    const double start = ProcessorSeconds();
    NoteCase(i, kMostSeconds);
    try {
      RunCase(i, most_operations);
    } catch (const std::bad_alloc&) {
      ADD_FAILURE() << "memory is allocated that no tensor accounts for";
    }
    EXPECT_LT(ProcessorSeconds() - start, kMostProcessorSeconds);
    ASSERT_LT(PeakResidentKb(), kMostResidentKb);
  }
  NoteCase(-1, 0);
  for (const auto& [what, n] : counts_)
    std::printf("%9lld %s\n", static_cast<long long>(n), what.c_str());
  if (count < 5000) return;
  // A generator that makes nothing but refusals tests nothing.
  EXPECT_GT(counts_["executed"], count / 6);
  EXPECT_GT(counts_["refused as invalid"], count / 50);
  EXPECT_GE(executed_.size(), 30);
}

}  // namespace
}  // namespace tilewire::testing
