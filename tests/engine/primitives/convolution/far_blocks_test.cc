// SPDX-License-Identifier: Apache-2.0
//
// Blocks of channels of large volumes lie further apart than 32 bits of displacement reach. Here
// small tensors have such blocks, in memory of which only the touched pages exist.
#include <sys/mman.h>

#include <vector>

#include "engine/base/checked_math.h"
#include "engine/memory/index_walk.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_case.h"
#include "tests/engine/primitives/integer_tensors.h"
#include "tests/engine/primitives/row_name.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

class SparseFloats {
 public:
  explicit SparseFloats(int64_t bytes)
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~SparseFloats() {
    if (memory_ != MAP_FAILED) munmap(memory_, bytes_);
  }
  SparseFloats(const SparseFloats&) = delete;
  float* get() const { return memory_ == MAP_FAILED ? nullptr : static_cast<float*>(memory_); }

 private:
  const int64_t bytes_;
  void* const memory_;
};

MemoryDesc WithFarBlocks(const MemoryDesc& desc, int64_t elements) {
  Dims strides = desc.strides();
  strides[1] = elements;
  strides[0] = elements * DivUp(desc.dim(1), desc.BlockSize(1));
  return *desc.WithStrides(strides);
}

using DirectRow = Implementation<ConvolutionDesc>;

class FarBlocksTest : public ::testing::TestWithParam<DirectRow> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(GetParam().isa))
      GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(GetParam().isa);
  }
};

TEST_P(FarBlocksTest, GiveTheBitsOfNeighbouringBlocks) {
  constexpr int64_t kFar = int64_t{600} * 1000 * 1000;
  const int64_t groups = GetParam().traits.algorithm == convolution::kGrouped ? 8 : 1;
  const ConvolutionCase shape =
      Case("", {1, 24, 3, 5, 6}, 40, {3, 3, 3}, {.groups = groups, .left = {1, 1, 1}});
  Attributes attributes = AttributesOf({SumPostOp{}});
  attributes.precision = GetParam().traits.precision;
  ASSERT_OK_AND_ASSIGN(const auto near,
                       CreateConvolution(DescOf(shape), attributes, {.only = GetParam().name}));
  ConvolutionDesc desc = DescOf(shape);
  desc.src = WithFarBlocks(near->Desc(kArgSrc), kFar);
  desc.dst = WithFarBlocks(near->Desc(kArgDst), kFar);
  ASSERT_OK_AND_ASSIGN(const auto far,
                       CreateConvolution(desc, attributes, {.only = GetParam().name}));
  const Contents contents = RandomContents(shape);
  const std::vector<float> want = Execute(*near, contents, threading::Team::Serial());

  const SparseFloats src(desc.src.SizeBytes()), dst(desc.dst.SizeBytes());
  if (src.get() == nullptr || dst.get() == nullptr) GTEST_SKIP() << "no address space";
  const auto fill = [](const MemoryDesc& md, const std::vector<float>& values, float* to) {
    const float* from = values.data();
    ForEachIndex(md.dims(), [&](const Dims& index) { to[md.Offset(index)] = *from++; });
  };
  fill(desc.src, contents.src, src.get());
  fill(desc.dst, contents.dst, dst.get());
  const AlignedBuffer weights = PackWeights(far->Desc(kArgWeights), contents.weights);
  ExecuteArgs args;
  args.Set(kArgSrc, src.get()).Set(kArgDst, dst.get());
  args.Set(kArgWeights, weights.data()).Set(kArgBias, contents.bias.data());
  const AlignedBuffer scratchpad = *AlignedBuffer::Allocate(far->ScratchpadDesc().SizeBytes());
  if (scratchpad.size() > 0) args.Set(kArgScratchpad, scratchpad.data());
  ASSERT_THAT(far->Execute(args, threading::Team::Serial()), IsOk());
  const float* expected = want.data();
  ForEachIndex(desc.dst.dims(), [&](const Dims& index) {
    ASSERT_EQ(dst.get()[desc.dst.Offset(index)], *expected)
        << "at element " << expected - want.data();
    ++expected;
  });
}

std::vector<DirectRow> RowsOfAnyChannels() {
  std::vector<DirectRow> rows;
  for (const DirectRow& row : FloatRows(ConvolutionImplementations())) {
    const bool writes_bf16 =
        row.isa == cpu::Isa::kAvx512Bf16 && row.traits.precision == Precision::kExact;
    const uint8_t algorithm = row.traits.algorithm;
    if (algorithm == convolution::kDirect || (algorithm == convolution::kGrouped && !writes_bf16))
      rows.push_back(row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(DirectRows, FarBlocksTest, ::testing::ValuesIn(RowsOfAnyChannels()),
                         RowName<DirectRow>);

}  // namespace
}  // namespace tilewire::testing
