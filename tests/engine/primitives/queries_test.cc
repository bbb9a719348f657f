// SPDX-License-Identifier: Apache-2.0
//
// Queries of primitives and of their tables (A10-A15, Q12), and the types of every implementation.
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/primitives/primitives.h"
#include "engine/primitives/probes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

Attributes UserMode() {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  return attributes;
}

std::set<PrimitiveKind> Kinds() {
  std::set<PrimitiveKind> kinds;
  for (const ImplementationRow& row : AllImplementations()) kinds.insert(row.kind);
  return kinds;
}

TEST(NumbersTest, ArgumentsAreMklDnns) {
  EXPECT_EQ(kArgSrc, 1);
  EXPECT_EQ(kArgDst, 17);
  EXPECT_EQ(kArgWeights, 33);
  EXPECT_EQ(kArgBias, 41);
  EXPECT_EQ(kArgWorkspace, 64);
  EXPECT_EQ(kArgScratchpad, 80);
  EXPECT_EQ(kArgDiffSrc, 129);
  EXPECT_EQ(kArgDiffSrc1, 130);
  EXPECT_EQ(kArgDiffDst, 145);
  EXPECT_EQ(kArgDiffWeights, 161);
  EXPECT_EQ(kArgDiffBias, 169);
  EXPECT_EQ(kArgMultipleSrc, 1024);
  EXPECT_EQ(kArgMultipleDst, 2048);
}

TEST(NumbersTest, PropagationsAreMklDnns) {
  EXPECT_EQ(static_cast<int>(PropKind::kForwardTraining), 64);
  EXPECT_EQ(static_cast<int>(PropKind::kForwardInference), 96);
  EXPECT_EQ(static_cast<int>(PropKind::kBackwardData), 160);
  EXPECT_EQ(static_cast<int>(PropKind::kBackward), 128);
  EXPECT_EQ(static_cast<int>(PropKind::kBackwardWeights), 192);
  EXPECT_EQ(PropKindName(PropKind::kForwardInference), "forward_inference");
  EXPECT_EQ(PropKindName(PropKind::kBackward), "backward");
  EXPECT_EQ(PropKindName(PropKind::kBackwardWeights), "backward_weights");
}

constexpr PropKind kPropKinds[] = {PropKind::kForwardTraining, PropKind::kForwardInference,
                                   PropKind::kBackward, PropKind::kBackwardData,
                                   PropKind::kBackwardWeights};

TEST(PropKindsTest, HoldTheirOwnAlone) {
  for (PropKind own : kPropKinds) {
    for (PropKind kind : kPropKinds) {
      EXPECT_EQ(PropKinds({own}).Has(kind), kind == own) << PropKindName(kind);
      EXPECT_EQ(PropKinds({own, PropKind::kBackward}).Has(kind),
                kind == own || kind == PropKind::kBackward);
    }
    EXPECT_EQ(kForwardKinds.Has(own), !IsBackward(own)) << PropKindName(own);
  }
}

TEST(PropKindsTest, DecideWhichArgumentsAreWritten) {
  struct Case {
    int arg;
    bool forward, backward;
  };
  const Case cases[] = {
      {kArgSrc, false, false},     {kArgSrc1, false, false},        {kArgDst, true, false},
      {kArgDstIterC, true, false}, {kArgWeights, false, false},     {kArgBias, false, false},
      {kArgMean, false, false},    {kArgWorkspace, true, false},    {kArgDiffSrc, true, true},
      {kArgDiffSrc1, true, true},  {kArgDiffDst, false, false},     {kArgDiffWeights, true, true},
      {kArgDiffBias, true, true},  {kArgMultipleSrc, false, false}, {kArgMultipleDst, true, false},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(ArgName(one.arg));
    for (PropKind kind : kPropKinds)
      EXPECT_EQ(IsOutput(kind, one.arg), IsBackward(kind) ? one.backward : one.forward);
  }
}

// A13: what a row does not run it refuses by name, and so do all rows of what has no backward.
TEST(PropKindsTest, WhatHasNoBackwardRefusesItByName) {
  for (PrimitiveKind kind : Kinds()) {
    for (OpDesc desc : Probes(kind, DataType::kF32)) {
      std::visit(
          [](auto& its) {
            if constexpr (requires { its.prop_kind; }) its.prop_kind = PropKind::kBackwardWeights;
          },
          desc);
      const bool has_kind = std::visit(
          [](auto& its) {
            return requires { its.prop_kind; };
          },
          desc);
      bool has_row = false;  // its tests know which descriptors it takes
      for (const ImplementationRow& row : AllImplementations()) {
        for (PropKind own : kPropKinds)
          has_row |= row.kind == kind && IsBackward(own) && row.traits.propagations.Has(own);
      }
      if (!has_kind || has_row) continue;
      EXPECT_THAT(CreatePrimitive(desc, UserMode(), {}),
                  StatusIs(absl::StatusCode::kUnimplemented, "does not run backward_weights"))
          << PrimitiveKindName(kind);
    }
  }
}

// A10: the table from its best row on. The row that serves a descriptor without being named takes
// it when named; every row before it, and every one that costs more, says why it does not serve.
TEST(QueriesTest, ImplementationsOfADescriptorCanBeIterated) {
  for (PrimitiveKind kind : Kinds()) {
    for (const OpDesc& desc : Probes(kind, DataType::kF32)) {
      const auto chosen = CreatePrimitive(desc, UserMode(), {});
      if (!chosen.ok()) continue;
      std::vector<std::string> before, refused;
      bool is_taken_when_named = false;
      for (const ImplementationRow& row : AllImplementations()) {
        if (row.kind != kind) continue;
        is_taken_when_named = row.name == (*chosen)->name();
        if (is_taken_when_named) break;
        before.emplace_back(row.name);
      }
      EXPECT_TRUE(is_taken_when_named);
      EXPECT_THAT(CreatePrimitive(desc, UserMode(), {.only = (*chosen)->name()}), IsOk());
      for (const Refusal& refusal : (*chosen)->info().creation.refusals) {
        refused.push_back(refusal.name);
        EXPECT_FALSE(refusal.reason.empty());
        const auto named = CreatePrimitive(desc, UserMode(), {.only = refusal.name});
        const bool takes = refusal.cycles > 0 || absl::StartsWith(refusal.reason, "comes after ");
        EXPECT_EQ(named.ok(), takes) << refusal.name << ": " << refusal.reason;
      }
      EXPECT_THAT(refused, ::testing::IsSupersetOf(before));
    }
  }
}

// A11, A17.
TEST(QueriesTest, APrimitiveTellsKindArgumentsLayoutsAndScratchpad) {
  ConvolutionDesc desc;
  desc.src = *MemoryDesc::CreateAny({1, 20, 5, 5}, DataType::kF32);
  desc.weights = *MemoryDesc::CreateAny({40, 20, 3, 3}, DataType::kF32);
  desc.bias = *MemoryDesc::CreatePattern({40}, DataType::kF32, "a");
  desc.dst = *MemoryDesc::CreateAny({1, 40, 5, 5}, DataType::kF32);
  desc.strides = desc.padding_left = desc.padding_right = {1, 1};
  desc.dilations = {0, 0};
  const auto primitive = CreatePrimitive(desc, UserMode(), {});
  ASSERT_TRUE(primitive.ok()) << primitive.status();
  EXPECT_EQ((*primitive)->kind(), PrimitiveKind::kConvolution);
  EXPECT_TRUE(absl::StartsWith((*primitive)->name(), "convolution/"));
  int inputs = 0, outputs = 0;
  for (const ArgDesc& arg : (*primitive)->info().args) {
    ++(arg.is_output ? outputs : inputs);
    EXPECT_EQ(arg.desc.format_kind(), FormatKind::kBlocked) << ArgName(arg.arg);
  }
  EXPECT_EQ(inputs, 3);
  EXPECT_EQ(outputs, 1);
  EXPECT_EQ((*primitive)->Desc(kArgSrc).dims(), desc.src.dims());
  EXPECT_EQ((*primitive)->Desc(kArgWeights).dims(), desc.weights.dims());
  EXPECT_EQ((*primitive)->Desc(kArgDst).dims(), desc.dst.dims());
  EXPECT_TRUE((*primitive)->Desc(kArgDiffSrc).IsZero());
  EXPECT_EQ((*primitive)->ScratchpadDesc().SizeBytes(), (*primitive)->info().scratchpad_bytes);
}

TEST(QueriesTest, EveryKindHasANameAndAReference) {
  for (PrimitiveKind kind : Kinds()) {
    std::map<PropKind, int> references, others;
    for (const ImplementationRow& row : AllImplementations()) {
      if (row.kind != kind) continue;
      EXPECT_TRUE(absl::StartsWith(row.name, absl::StrCat(PrimitiveKindName(kind), "/")));
      for (PropKind prop_kind : kPropKinds) {
        if (!row.traits.propagations.Has(prop_kind)) continue;
        ++(row.traits.is_reference ? references : others)[prop_kind];
      }
    }
    EXPECT_EQ(references[PropKind::kForwardInference], 1) << PrimitiveKindName(kind);
    for (PropKind prop_kind : kPropKinds) {
      EXPECT_LE(references[prop_kind], 1) << PropKindName(prop_kind);
      EXPECT_TRUE(references[prop_kind] == 1 || others[prop_kind] == 0) << PropKindName(prop_kind);
    }
  }
}

// Q12.
TEST(QueriesTest, PrimitivesThatTakeNoPostOpsRefuseThemAtCreation) {
  Attributes relu = UserMode(), sum = UserMode();
  ASSERT_TRUE(relu.post_ops.Append(EltwisePostOp{}).ok());
  ASSERT_TRUE(sum.post_ops.Append(SumPostOp{}).ok());
  for (PrimitiveKind kind : {PrimitiveKind::kReorder, PrimitiveKind::kShuffle,
                             PrimitiveKind::kConcat, PrimitiveKind::kSum, PrimitiveKind::kEltwise,
                             PrimitiveKind::kSoftmax, PrimitiveKind::kPooling}) {
    SCOPED_TRACE(PrimitiveKindName(kind));
    bool any_takes_sum = false;
    for (const OpDesc& desc : Probes(kind, DataType::kF32)) {
      EXPECT_EQ(CreatePrimitive(desc, relu, {}).status().code(), absl::StatusCode::kUnimplemented);
      any_takes_sum |= CreatePrimitive(desc, sum, {}).ok();
    }
    EXPECT_EQ(any_takes_sum, kind == PrimitiveKind::kReorder);
  }
}

bool IsOfSrc(const OpDesc& desc) {
  return std::visit([](const auto& its) { return PropKindOf(its) == PropKind::kBackwardData; },
                    desc);
}

TEST(QueriesTest, ForwardTakesNoMask) {
  Attributes masked = UserMode();
  ASSERT_TRUE(masked.post_ops.Append(MaskPostOp{}).ok());
  for (PrimitiveKind kind : Kinds()) {
    for (const OpDesc& desc : Probes(kind, DataType::kF32)) {
      if (IsOfSrc(desc)) continue;
      EXPECT_THAT(CreatePrimitive(desc, masked, {}),
                  StatusIs(absl::StatusCode::kUnimplemented, "mask"))
          << PrimitiveKindName(kind);
    }
  }
}

TEST(QueriesTest, ConvolutionAloneTakesMaxPooling) {
  Attributes pooled = UserMode();
  ASSERT_TRUE(pooled.post_ops.Append(MaxPoolingPostOp{}).ok());
  for (PrimitiveKind kind : Kinds()) {
    bool any_takes_it = false;
    for (const OpDesc& desc : Probes(kind, DataType::kF32)) {
      const auto primitive = CreatePrimitive(desc, pooled, {});
      any_takes_it |= primitive.ok();
      EXPECT_TRUE(primitive.ok() || absl::IsUnimplemented(primitive.status()));
    }
    EXPECT_EQ(any_takes_it, kind == PrimitiveKind::kConvolution) << PrimitiveKindName(kind);
  }
}

// A row that takes none of them is listed without a type: it needs a probe of its kind.
TEST(ProbesTest, EveryImplementationTakesAProbe) {
  for (const ImplementationRow& row : AllImplementations()) {
    EXPECT_FALSE(TypesOf(row).empty()) << row.name << ": see engine/primitives/probes.cc";
  }
}

// "due" where no CPU that has the row has run the tests.
TEST(CasesTakenTest, EveryRowIsDeclared) {
  std::ifstream file("tests/engine/primitives/cases_taken.txt");
  std::set<std::string> declared, rows;
  for (std::string line; std::getline(file, line);) declared.insert(line.substr(0, line.find(' ')));
  for (const ImplementationRow& row : AllImplementations()) {
    if (!row.traits.runs_another) rows.insert(std::string(row.name));
  }
  RecordProperty("rows", absl::StrJoin(rows, " "));
  EXPECT_TRUE(absl::c_includes(declared, rows))
      << "run the tests, then tests/engine/primitives/cases_taken.py";
}

}  // namespace
}  // namespace tilewire::testing
