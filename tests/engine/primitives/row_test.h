// SPDX-License-Identifier: Apache-2.0
//
// Tests that visit every row of a primitive's table of implementations, one test a row: rows whose
// instruction set the CPU lacks are skipped; a row that takes no case of a test, or another number
// of them than cases_taken.txt declares, fails it.
#ifndef TESTS_ENGINE_PRIMITIVES_ROW_TEST_H_
#define TESTS_ENGINE_PRIMITIVES_ROW_TEST_H_

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/memory/layout.h"
#include "engine/primitives/implementation.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/cases_taken.h"
#include "tests/engine/primitives/row_name.h"
#include "tests/engine/primitives/tensors.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {

// One operation, created in both scratchpad modes.
struct Created {
  std::shared_ptr<const Primitive> library, user;
  const MemoryDesc& Desc(int arg) const { return library->Desc(arg); }
};

// Executes in both modes, on 1, 2 and 7 threads, and expects the same bytes of all.
Bytes ExecuteAllWays(const Created& primitive, const Inputs& inputs, int output,
                     const Bytes& before);

// The elements of `output`, f32 in the layout `md`, which a tensor has that begins with a line and
// one that begins 16 bytes further, where nothing can be written past the caches. `args` are all
// others.
std::vector<std::vector<float>> WrittenWhereverItBegins(const Created& primitive, ExecuteArgs args,
                                                        int output, const MemoryDesc& md);

template <typename Desc>
class RowTest : public ::testing::TestWithParam<Implementation<Desc>> {
 protected:
  using CreateFunction = absl::StatusOr<std::shared_ptr<const Primitive>> (*)(const Desc&,
                                                                              const Attributes&,
                                                                              const CreateOptions&);
  explicit RowTest(CreateFunction create) : create_(create) {}

  void SetUp() override {
    if (!cpu::Supports(this->GetParam().isa))
      GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(this->GetParam().isa);
    // Every row but the references, which are not run between reorders, needs AVX2 at least.
    if (this->GetParam().traits.runs_another && !cpu::Supports(cpu::Isa::kAvx2))
      GTEST_SKIP() << "without avx2 there is no other row to run";
  }
  void TearDown() override {
    EXPECT_TRUE(this->IsSkipped() || taken_ > 0) << "the row took no case";
  }

  // With the precision that the row needs; nothing where the row refuses the case. A row that runs
  // another one is asked for layouts that the others do not take (InUnusualLayouts).
  std::optional<Created> Create(const Desc& asked, Attributes attributes = {}) {
    const Desc desc = this->GetParam().traits.runs_another ? InUnusualLayouts(asked) : asked;
    const CreateOptions options{.only = this->GetParam().name};
    attributes.precision = this->GetParam().traits.precision;
    attributes.scratchpad_mode = ScratchpadMode::kLibrary;
    auto library = create_(desc, attributes, options);
    attributes.scratchpad_mode = ScratchpadMode::kUser;
    auto user = create_(desc, attributes, options);
    EXPECT_EQ(library.status(), user.status());
    if (!this->GetParam().traits.runs_another) CountCase(this->GetParam().name, library.ok());
    if (absl::IsUnimplemented(library.status())) return std::nullopt;
    EXPECT_THAT(library, IsOk());
    if (!library.ok() || !user.ok()) return std::nullopt;
    EXPECT_EQ((*library)->name(), this->GetParam().name);
    EXPECT_TRUE((*library)->ScratchpadDesc().IsZero());
    EXPECT_EQ((*user)->MemoryConsumptionBytes(), 0);
    EXPECT_EQ((*user)->ScratchpadDesc().SizeBytes(), (*library)->MemoryConsumptionBytes());
    ++taken_;
    return Created{*library, *user};
  }

 private:
  // Each tensor that is `any` or row-major column-major instead.
  static Desc InUnusualLayouts(Desc desc) {
    const auto reverse = [](MemoryDesc* tensor) {
      if (tensor->rank() < 2 ||
          (!tensor->IsAny() && *tensor != Plain(tensor->dims(), tensor->data_type())))
        return;
      std::string pattern(PlainPattern(tensor->rank()));
      *tensor = *MemoryDesc::CreatePattern(tensor->dims(), tensor->data_type(),
                                           std::string(pattern.rbegin(), pattern.rend()));
    };
    if constexpr (requires { reverse(&desc.src), reverse(&desc.dst); }) {
      reverse(&desc.src);
      reverse(&desc.dst);
    }
    if constexpr (requires { reverse(&desc.weights); }) reverse(&desc.weights);
    return desc;
  }

  const CreateFunction create_;
  int taken_ = 0;
};

// The rows that run one of `kinds`.
template <typename Desc>
std::vector<Implementation<Desc>> RowsThatRun(std::initializer_list<PropKind> kinds,
                                              absl::Span<const Implementation<Desc>> table) {
  std::vector<Implementation<Desc>> rows;
  for (const Implementation<Desc>& row : table) {
    const auto runs = [&](PropKind kind) { return row.traits.propagations.Has(kind); };
    if (std::any_of(kinds.begin(), kinds.end(), runs)) rows.push_back(row);
  }
  return rows;
}

// The tests of Name##Test, a RowTest<Name##Desc>, for every row of Name##Implementations() that
// runs forward; and those of Name##BackwardTest for every row that runs backward.
#define TILEWIRE_TEST_EVERY_ROW(Name)                                                           \
  INSTANTIATE_TEST_SUITE_P(                                                                     \
      AllImplementations, Name##Test,                                                           \
      ::testing::ValuesIn(RowsThatRun({PropKind::kForwardInference}, Name##Implementations())), \
      RowName<Implementation<Name##Desc>>)
#define TILEWIRE_TEST_EVERY_BACKWARD_ROW(Name)                                                    \
  INSTANTIATE_TEST_SUITE_P(                                                                       \
      AllImplementations, Name##BackwardTest,                                                     \
      ::testing::ValuesIn(                                                                        \
          RowsThatRun({PropKind::kBackward, PropKind::kBackwardData, PropKind::kBackwardWeights}, \
                      Name##Implementations())),                                                  \
      RowName<Implementation<Name##Desc>>)

// The codes that creation refuses with.
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

// A function that creates a primitive with the default options, for its status alone.
template <typename Desc>
auto StatusOfCreating(absl::StatusOr<std::shared_ptr<const Primitive>> (*create)(
    const Desc&, const Attributes&, const CreateOptions&)) {
  return [create](const Desc& desc, const Attributes& attributes = {}) {
    return create(desc, attributes, {}).status();
  };
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_ROW_TEST_H_
