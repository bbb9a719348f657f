// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/random_descriptors/random_cases.h"

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/support/crash_note.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kMostResidentKb = 3 << 20;  // several tensors of the service's bound at once
constexpr unsigned kMostSeconds = 60;         // of a case that computes without end
constexpr double kMostProcessorSeconds = 20;  // of a case: tables of 512 MB are made in a few

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

// Whether what a descriptor or an execution got is one of the refusals, with a message.
bool IsRefusal(const absl::Status& status) {
  return (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status) ||
          absl::IsResourceExhausted(status)) &&
         !status.message().empty();
}

std::string TextOf(const RandomCase& test) {
  std::string text = std::string(PrimitiveKindName(KindOf(test.desc)));
  for (const MemoryDesc* tensor : TensorsOf(test.desc)) {
    absl::StrAppend(&text, " ", tensor->ToString());
  }
  return absl::StrCat(text, " ", test.attributes.ToString());
}

}  // namespace

RandomCasesTest::RandomCasesTest(const char* kind, int64_t count, double most_operations)
    : first_(static_cast<int64_t>(Setting("TILEWIRE_FIRST_DESCRIPTOR", 0))),
      count_(static_cast<int64_t>(Setting("TILEWIRE_DESCRIPTORS", static_cast<double>(count)))),
      most_operations_(Setting("TILEWIRE_MOST_OPERATIONS", most_operations)) {
  InstallCrashNote(kind);
  for (const cpu::Isa isa : {cpu::BestIsa(), cpu::Isa::kAvx2, cpu::Isa::kBaseline}) {
    if (!cpu::Supports(isa)) continue;
    EngineOptions options;
    options.max_isa = isa;
    options.threads = 1;
    options.primitive_cache_bytes = 8 << 20;
    engines_.push_back(Engine::Create(options).value());
  }
}

int64_t RandomCasesTest::CountOf(const std::string& what) const {
  const auto found = counts_.find(what);
  return found == counts_.end() ? 0 : found->second;
}

bool RandomCasesTest::MayExecute(const OpDesc& desc, const PrimitiveInfo& info) {
  EXPECT_GE(info.scratchpad_bytes, 0);
  double bytes = static_cast<double>(info.scratchpad_bytes);
  for (const ArgDesc& arg : info.args) bytes += static_cast<double>(arg.desc.SizeBytes());
  if (bytes <= kMostExecutedBytes && Operations(desc) <= most_operations_) return true;
  Count("created");
  return false;
}

PrimitiveEngine& RandomCasesTest::AnyEngine(Random& random) {
  const int64_t last = static_cast<int64_t>(engines_.size()) - 1;
  return engines_[Chance(random, 60) ? 0 : random.Integer(0, last)]->primitives();
}

void RandomCasesTest::CountRefusal(const absl::Status& status, const std::string& what) {
  EXPECT_TRUE(IsRefusal(status)) << status;
  Count(what);
}

void RandomCasesTest::Try(Random& random, const RandomCase& test,
                          absl::FunctionRef<void(PrimitiveEngine&, const Primitive&)> execute) {
  if (DescribedBytes(test.desc) > kMostTensorBytes) return Count("too large for the service");
  SCOPED_TRACE(TextOf(test));
  PrimitiveEngine& engine = AnyEngine(random);
  const auto found = engine.GetPrimitive(test.desc, test.attributes);
  if (!found.ok()) {
    return CountRefusal(found.status(), absl::IsUnimplemented(found.status())
                                            ? "refused by every implementation"
                                            : "refused as invalid");
  }
  if (MayExecute(test.desc, found->primitive->info())) execute(engine, *found->primitive);
}

void RandomCasesTest::RunCase(int64_t index, uint64_t seed, absl::FunctionRef<void(Random&)> run) {
  SCOPED_TRACE(absl::StrCat("TILEWIRE_FIRST_DESCRIPTOR=", index));
  const double start = ProcessorSeconds();
  NoteCase(index, kMostSeconds);
  Random random(seed + static_cast<uint64_t>(index) * 0x9e3779b9);
  try {
    run(random);
  } catch (const std::bad_alloc&) {
    ADD_FAILURE() << "memory is allocated that no tensor accounts for";
  }
  EXPECT_LT(ProcessorSeconds() - start, kMostProcessorSeconds);
  ASSERT_LT(PeakResidentKb(), kMostResidentKb);
}

void RandomCasesTest::RunCases(uint64_t seed, absl::FunctionRef<void(Random&)> run) {
  for (int64_t i = first_; i < first_ + count_ && !HasFailure(); ++i) RunCase(i, seed, run);
  NoteCase(-1, 0);
  for (const auto& [what, n] : counts_)
    std::printf("%9lld %s\n", static_cast<long long>(n), what.c_str());
}

}  // namespace tilewire::testing
