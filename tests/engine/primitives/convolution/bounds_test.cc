// SPDX-License-Identifier: Apache-2.0
//
// No integer row, and no f32 row that takes parts of vectors, touches memory that follows a tensor:
// each tensor here ends where a page begins that may not be touched.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "engine/base/checked_math.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_case.h"
#include "tests/engine/primitives/integer_tensors.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

class BytesBeforeAWall {
 public:
  explicit BytesBeforeAWall(int64_t bytes)
      : page_(sysconf(_SC_PAGESIZE)),
        mapped_(RoundUp(bytes, page_) + page_),
        memory_(static_cast<std::byte*>(
            mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        begin_(memory_ + mapped_ - page_ - bytes) {
    mprotect(memory_ + mapped_ - page_, page_, PROT_NONE);
    std::memset(begin_, 1, bytes);
  }
  ~BytesBeforeAWall() { munmap(memory_, mapped_); }
  BytesBeforeAWall(const BytesBeforeAWall&) = delete;
  std::byte* get() const { return begin_; }

 private:
  const int64_t page_, mapped_;
  std::byte* const memory_;
  std::byte* const begin_;
};

void RunBeforeAWall(const Primitive& primitive, const char* why) {
  SCOPED_TRACE(why);
  const BytesBeforeAWall from(primitive.Desc(kArgSrc).SizeBytes());
  const BytesBeforeAWall to(primitive.Desc(kArgDst).SizeBytes());
  // Weights are read in whole vectors, from where they are aligned.
  const BytesBeforeAWall weights(RoundUp(primitive.Desc(kArgWeights).SizeBytes(), 64));
  ExecuteArgs args;
  args.Set(kArgSrc, from.get()).Set(kArgDst, to.get()).Set(kArgWeights, weights.get());
  EXPECT_THAT(primitive.Execute(args, threading::Team::Serial()), IsOk());
}

// Whether the row takes the shape.
bool RunsBeforeAWall(const ImplementationFacts& row, const ConvolutionCase& shape, DataType src) {
  ConvolutionDesc desc = DescOf(shape);
  desc.src = *MemoryDesc::CreateAny(shape.SrcDims(), src);
  desc.weights = *MemoryDesc::CreateAny(shape.WeightsDims(), DataType::kS8);
  desc.dst = *MemoryDesc::CreateAny(shape.DstDims(), DataType::kU8);
  desc.bias = {};
  const auto created = CreateConvolution(desc, {}, {.only = row.name});
  if (created.ok()) RunBeforeAWall(**created, shape.why);
  return created.ok();
}

TEST(ConvolutionBoundsTest, AreKept) {
  const std::vector<ConvolutionCase> shapes = {
      Case("whole steps, flat, a short tile", {1, 64, 5, 5}, 16, {1, 1}),
      Case("one pixel in the second tile", {1, 128, 1, 17}, 48, {1, 1}),
      Case("part of a step", {1, 36, 5, 7}, 20, {1, 1}),
      Case("3x3 without padding", {1, 64, 5, 9}, 32, {3, 3}),
      Case("stride 2", {1, 64, 9, 41}, 17, {1, 1}, {.strides = {2, 2}}),
      Case("groups", {1, 128, 3, 6}, 32, {3, 3}, {.groups = 2, .left = {1, 1}}),
      Case("depthwise", {1, 24, 5, 9}, 24, {3, 3}, {.groups = 24, .left = {1, 1}}),
      Case("first layer", {1, 3, 13, 19}, 20, {7, 7}, {.strides = {2, 2}, .left = {3, 3}}),
  };
  for (const ImplementationFacts& row : IntegerRows(ConvolutionImplementations())) {
    if (!cpu::Supports(row.isa)) continue;
    SCOPED_TRACE(row.name);
    int taken = 0;
    for (const ConvolutionCase& shape : shapes) {
      taken += RunsBeforeAWall(row, shape, DataType::kU8);
      taken += RunsBeforeAWall(row, shape, DataType::kS8);
    }
    EXPECT_GT(taken, 0);
  }
}

// Bounds of nhwc tensors, whose last pixel ends with a part of a vector.
TEST(ConvolutionBoundsTest, AreKeptByDepthwiseRowsOfPixels) {
  if (!cpu::Supports(cpu::Isa::kAvx512)) GTEST_SKIP() << "the CPU lacks AVX-512";
  for (const int64_t channels : {3, 20, 28, 49}) {
    ConvolutionCase shape = Case("depthwise", {1, channels, 5, 9}, channels, {3, 3},
                                 {.groups = channels, .left = {1, 1}, .bias = false});
    const auto created = CreateConvolution(DescOf(shape, "acdb", "acdb"), AttributesOf({}),
                                           {.only = "convolution/avx512_f32_depthwise"});
    ASSERT_THAT(created, IsOk());
    RunBeforeAWall(**created, "depthwise");
  }
}

}  // namespace
}  // namespace tilewire::testing
