// SPDX-License-Identifier: Apache-2.0
//
// Which row of a table a search creates, where rows say what they cost.
#include "engine/primitives/row_runs.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/primitives/implementation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

struct IdleDesc {
  bool takes_nothing = false;
};
TILEWIRE_FIELDS(IdleDesc, takes_nothing);

using IdleRow = Implementation<IdleDesc>;

class Idle final : public Primitive {
 public:
  explicit Idle(PrimitiveInfo info) : Primitive(std::move(info)) {}

 private:
  void Run(const ExecuteArgs&, std::byte*, const threading::Team&) const override {}
};

int idles_created = 0;

absl::StatusOr<IdleDesc> AcceptIdle(const Request<IdleDesc>& request) { return request.desc; }
absl::StatusOr<std::unique_ptr<Primitive>> CreateIdle(const Request<IdleDesc>& request) {
  ++idles_created;
  PrimitiveInfo info;
  info.name = std::string(request.facts.name);
  return std::make_unique<Idle>(std::move(info));
}
absl::StatusOr<std::unique_ptr<Primitive>> CannotCreate(const Request<IdleDesc>&) {
  return absl::UnimplementedError("no code");
}
template <int kCycles>
double Cycles(const Request<IdleDesc>&) {
  return kCycles;
}
double CyclesOfMachine(const Request<IdleDesc>& request) {
  return 2000 / request.machine.fmas_of_32_bytes;
}

constexpr ImplementationTraits kHandicapped = {.handicap = 1.5f};
constexpr IdleRow kSlow = {{"idle/slow"}, AcceptIdle, CreateIdle, Cycles<1'234'567>};
constexpr IdleRow kUnmade = {{"idle/unmade"}, AcceptIdle, CannotCreate, Cycles<100>};
constexpr IdleRow kLoaded = {
    {"idle/loaded", cpu::Isa::kBaseline, kHandicapped}, AcceptIdle, CreateIdle, Cycles<900>};
constexpr IdleRow kFast = {{"idle/fast"}, AcceptIdle, CreateIdle, Cycles<1000>};
constexpr IdleRow kAsFast = {{"idle/as_fast"}, AcceptIdle, CreateIdle, CyclesOfMachine};
constexpr IdleRow kUnknown = {{"idle/unknown"}, AcceptIdle, CreateIdle};
constexpr IdleRow kFastest = {{"idle/fastest"}, AcceptIdle, CreateIdle, Cycles<1>};

std::shared_ptr<const Primitive> Search(const std::vector<IdleRow>& table,
                                        const cpu::Machine& machine = {}) {
  const auto primitive = CreateFirst<IdleDesc>(table, {}, {}, {.machine = machine});
  EXPECT_THAT(primitive, IsOk());
  return *primitive;
}

TEST(RowRunsTest, TheCheapestOfNeighboursIsCreatedAloneAndTheOthersSayWhyNot) {
  idles_created = 0;
  const auto primitive = Search({kSlow, kUnmade, kLoaded, kFast, kUnknown, kFastest});
  EXPECT_EQ(primitive->name(), "idle/fast");
  EXPECT_EQ(idles_created, 1);
  const CreationRecord& record = primitive->info().creation;
  EXPECT_EQ(record.cycles, 1000);
  EXPECT_THAT(
      record.refusals,
      ElementsAre(
          FieldsAre("idle/unmade", "no code", true, 0),
          FieldsAre("idle/loaded", "estimated 900 cycles (counted 1.5 times), idle/fast 1,000",
                    true, 900),
          FieldsAre("idle/slow", "estimated 1,234,567 cycles, idle/fast 1,000", true, 1'234'567)));
}

TEST(RowRunsTest, ARowWithoutACostKeepsItsPlace) {
  EXPECT_EQ(Search({kUnknown, kFastest})->name(), "idle/unknown");
  EXPECT_EQ(Search({kUnmade, kUnknown, kFastest})->name(), "idle/unknown");
  EXPECT_EQ(Search({kUnknown, kFastest})->info().creation.cycles, 0);
}

TEST(RowRunsTest, OfEquallyCheapOnesTheFirstIsTaken) {
  EXPECT_EQ(Search({kSlow, kFast, kAsFast})->name(), "idle/fast");
  EXPECT_EQ(Search({kAsFast, kFast})->name(), "idle/as_fast");
}

TEST(RowRunsTest, CostsAreThoseOfTheMachineThatIsGiven) {
  EXPECT_EQ(Search({kFast, kAsFast}, {.fmas_of_32_bytes = 4})->name(), "idle/as_fast");
  EXPECT_EQ(Search({kAsFast, kFast}, {.fmas_of_32_bytes = 1})->name(), "idle/fast");
}

}  // namespace
}  // namespace tilewire::testing
