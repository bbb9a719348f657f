// SPDX-License-Identifier: Apache-2.0
//
// The base of all primitives, on one that doubles bytes through its scratchpad.
#include "engine/primitives/primitive.h"

#include <cstring>

#include "engine/primitives/implementation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr int64_t kBytes = 100;

struct DoubleDesc {
  bool needs_scratchpad = true;
};
TILEWIRE_FIELDS(DoubleDesc, needs_scratchpad);

class Double final : public Primitive {
 public:
  explicit Double(PrimitiveInfo info) : Primitive(std::move(info)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad, const threading::Team&) const override {
    const auto* src = args.Get<uint8_t>(kArgSrc);
    auto* dst = args.Get<uint8_t>(kArgDst);
    if (scratchpad != nullptr) std::memcpy(scratchpad, src, kBytes);
    for (int64_t i = 0; i < kBytes; ++i) dst[i] = src[i] * 2;
  }
};

absl::StatusOr<DoubleDesc> Refuse(const Request<DoubleDesc>&) {
  return absl::UnimplementedError("never in the mood");
}

absl::StatusOr<DoubleDesc> Accept(const Request<DoubleDesc>& request) { return request.desc; }

absl::StatusOr<std::unique_ptr<Primitive>> Create(const Request<DoubleDesc>& request) {
  const MemoryDesc md = MemoryDesc::CreatePattern({kBytes}, DataType::kU8, "a").value();
  PrimitiveInfo info;
  info.name = std::string(request.facts.name);
  info.traits = request.facts.traits;
  info.args = {{kArgSrc, md}, {kArgDst, md}};
  info.scratchpad_bytes = request.desc.needs_scratchpad ? kBytes : 0;
  info.scratchpad_mode = request.attributes.scratchpad_mode;
  return std::make_unique<Double>(std::move(info));
}

constexpr Implementation<DoubleDesc> kTable[] = {
    {{"double/avx512_bf16", cpu::Isa::kAvx512Bf16}, Accept, Create},
    {{"double/moody", cpu::Isa::kBaseline}, Refuse, Create},
    {{"double/reference", cpu::Isa::kBaseline, {.is_reference = true}}, Accept, Create},
};

const CreateOptions kBaseline = {.max_isa = cpu::Isa::kBaseline, .only = {}};

std::shared_ptr<const Primitive> CreateDouble(ScratchpadMode mode, bool needs_scratchpad) {
  Attributes attributes;
  attributes.scratchpad_mode = mode;
  auto primitive = CreateFirst<DoubleDesc>(kTable, {needs_scratchpad}, attributes, kBaseline);
  EXPECT_TRUE(primitive.ok()) << primitive.status();
  return *primitive;
}

struct CopyBuffers {
  alignas(64) uint8_t src[kBytes], dst[kBytes], scratchpad[kBytes + 1];
  ExecuteArgs Args() {
    std::memset(src, 21, sizeof(src));
    std::memset(dst, 0, sizeof(dst));
    return ExecuteArgs().Set(kArgSrc, src).Set(kArgDst, dst);
  }
};

absl::Status Execute(const Primitive& primitive, const ExecuteArgs& args) {
  return primitive.Execute(args, threading::Team::Serial());
}

TEST(CreateFirstTest, TakesTheFirstThatFits) {
  const auto primitive = CreateFirst<DoubleDesc>(kTable, {}, {}, kBaseline);
  ASSERT_TRUE(primitive.ok());
  EXPECT_EQ((*primitive)->name(), "double/reference");
}

// A10: the implementations one after the other, with the reason of each that does not take it.
TEST(CreateFirstTest, ImplementationsCanBeIterated) {
  std::vector<std::string> taken;
  for (const Implementation<DoubleDesc>& row : kTable) {
    const CreateOptions this_one = {.max_isa = cpu::Isa::kAvx512Bf16, .only = row.name};
    const auto primitive = CreateFirst<DoubleDesc>(kTable, {}, {}, this_one);
    if (!primitive.ok()) {
      EXPECT_THAT(primitive.status().message(), HasSubstr("double/moody: never in the mood"));
      continue;
    }
    EXPECT_EQ((*primitive)->name(), row.name);
    EXPECT_TRUE((*primitive)->info().creation.refusals.empty());
    taken.emplace_back(row.name);
  }
  EXPECT_THAT(taken, ::testing::ElementsAre("double/avx512_bf16", "double/reference"));
}

TEST(CreateFirstTest, ThePrimitiveKnowsWhyBetterOnesRefused) {
  const auto primitive = CreateFirst<DoubleDesc>(kTable, {}, {}, kBaseline);
  ASSERT_TRUE(primitive.ok());
  const std::vector<Refusal>& refusals = (*primitive)->info().creation.refusals;
  ASSERT_EQ(refusals.size(), 2u);
  EXPECT_EQ(refusals[0].name, "double/avx512_bf16");
  EXPECT_EQ(refusals[0].reason, "needs avx512_bf16");
  EXPECT_EQ(refusals[1].name, "double/moody");
  EXPECT_EQ(refusals[1].reason, "never in the mood");
}

TEST(CreateFirstTest, RefusalListsEveryReason) {
  const auto table = absl::MakeConstSpan(kTable).subspan(0, 2);
  const absl::Status status = CreateFirst<DoubleDesc>(table, {}, {}, kBaseline).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  // First the rows that looked at the descriptor: a client may cut the rest.
  EXPECT_THAT(std::string(status.message()),
              EndsWith("; double/moody: never in the mood; double/avx512_bf16: "
                       "needs avx512_bf16"));
}

TEST(CreateFirstTest, ReferenceOnlyTakesTheReference) {
  CreateOptions options = kBaseline;
  options.max_isa = cpu::Isa::kAvx512Bf16;
  options.reference_only = true;
  const auto primitive = CreateFirst<DoubleDesc>(kTable, {}, {}, options);
  ASSERT_TRUE(primitive.ok());
  EXPECT_TRUE((*primitive)->info().traits.is_reference);
  EXPECT_TRUE((*primitive)->info().creation.refusals.empty());
}

TEST(CreateFirstTest, OnlyNamesOneImplementation) {
  CreateOptions options = kBaseline;
  options.only = "double/moody";
  EXPECT_EQ(CreateFirst<DoubleDesc>(kTable, {}, {}, options).status().code(),
            absl::StatusCode::kUnimplemented);
  options.only = "double/nothing";
  EXPECT_EQ(CreateFirst<DoubleDesc>(kTable, {}, {}, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// S01, S02: the library brings the scratchpad, and says what it costs.
TEST(ScratchpadModeTest, LibraryModeBringsItsOwn) {
  for (bool needed : {true, false}) {
    const auto primitive = CreateDouble(ScratchpadMode::kLibrary, needed);
    EXPECT_EQ(primitive->ScratchpadDesc(), MemoryDesc());
    EXPECT_EQ(primitive->MemoryConsumptionBytes(), needed ? kBytes : 0);
    CopyBuffers buffers;
    EXPECT_TRUE(Execute(*primitive, buffers.Args()).ok());
    EXPECT_EQ(buffers.dst[kBytes - 1], 42);
  }
}

// S03: the user brings what ScratchpadDesc() says, and nothing when that has no bytes.
TEST(ScratchpadModeTest, UserModeTellsItsSizeAndOwnsNothing) {
  for (bool needed : {true, false}) {
    const auto primitive = CreateDouble(ScratchpadMode::kUser, needed);
    EXPECT_EQ(primitive->ScratchpadDesc().data_type(), DataType::kU8);
    EXPECT_EQ(primitive->ScratchpadDesc().rank(), 1);
    EXPECT_EQ(primitive->ScratchpadDesc().SizeBytes(), needed ? kBytes : 0);
    EXPECT_EQ(primitive->MemoryConsumptionBytes(), 0);
  }
}

TEST(ScratchpadModeTest, UserModeUsesTheGivenBuffer) {
  const auto primitive = CreateDouble(ScratchpadMode::kUser, true);
  CopyBuffers buffers;
  ExecuteArgs args = buffers.Args();
  ASSERT_TRUE(Execute(*primitive, args.Set(kArgScratchpad, buffers.scratchpad)).ok());
  EXPECT_EQ(buffers.dst[0], 42);
  EXPECT_EQ(buffers.scratchpad[0], 21);
}

TEST(ScratchpadModeTest, UserModeRefusesAMissingOrMisalignedBuffer) {
  const auto primitive = CreateDouble(ScratchpadMode::kUser, true);
  CopyBuffers buffers;
  ExecuteArgs args = buffers.Args();
  EXPECT_THAT(Execute(*primitive, args).message(), HasSubstr("scratchpad is missing"));
  args.Set(kArgScratchpad, buffers.scratchpad + 1);
  EXPECT_THAT(Execute(*primitive, args).message(), HasSubstr("64-byte boundary"));
}

TEST(ScratchpadModeTest, UserModeNeedsNoBufferOfNoBytes) {
  const auto primitive = CreateDouble(ScratchpadMode::kUser, false);
  CopyBuffers buffers;
  ExecuteArgs args = buffers.Args();
  EXPECT_TRUE(Execute(*primitive, args.Set(kArgScratchpad, nullptr)).ok());
}

TEST(ExecuteTest, MissingArgumentIsNamed) {
  const auto primitive = CreateDouble(ScratchpadMode::kLibrary, true);
  CopyBuffers buffers;
  const absl::Status status = Execute(*primitive, ExecuteArgs().Set(kArgSrc, buffers.src));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("dst is missing"));
}

TEST(ExecuteArgsTest, LaterPointersReplaceEarlierOnes) {
  int first = 0, second = 0;
  ExecuteArgs args;
  args.Set(kArgSrc, &first).Set(kArgSrc, &second);
  EXPECT_EQ(args.Find(kArgSrc), &second);
  EXPECT_EQ(args.Find(kArgDst), nullptr);
}

TEST(ArgNameTest, NamesEveryKind) {
  EXPECT_EQ(ArgName(kArgDiffDst), "diff_dst");
  EXPECT_EQ(ArgName(kArgMultipleSrc + 2), "multiple_src[2]");
  EXPECT_EQ(ArgName(kArgMultipleDst), "multiple_dst[0]");
  EXPECT_EQ(ArgName(5), "argument 5");
}

}  // namespace
}  // namespace tilewire::testing
