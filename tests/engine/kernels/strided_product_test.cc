// SPDX-License-Identifier: Apache-2.0
//
// Products of which the result is much to write, or the weights much to read: whether rows go past
// the caches, and however K is cut, elements have the bits of one chain of additions; but of one
// for each part of K where that is asked for.
#include "engine/kernels/products/strided_product.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/cpu/isa.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

float Element(int64_t i) { return static_cast<float>((i * 7919) % 1009) / 1009 - 0.5f; }

struct Written {
  const char* why;
  int64_t m, n, k, dst_row;
  int64_t offset;  // of dst, in floats from a line on
};

const Written kWritten[] = {
    {"whole lines", 1030, 1040, 3, 1040, 0},
    {"whole lines, past the caches", 2050, 2064, 3, 2064, 0},
    {"lines that begin elsewhere", 2050, 2064, 3, 2064, 4},
    {"rows of parts of lines", 1030, 1030, 3, 1030, 0},
    {"rows with gaps of whole lines", 2050, 2048, 8, 2064, 0},
    {"one row", 1, 4227072, 2, 4227072, 0},
    {"as many products as may be", 1024, 1024, 64, 1024, 0},
    {"more products", 1024, 1024, 65, 1024, 0},
    {"more weights than caches hold, few rows, tails of all", 9, 2101, 2003, 2103, 0},
    {"the same, several pieces", 2, 8208, 512, 8208, 0},
    {"the same, fewer products than two parts of them", 5, 40960, 127, 40960, 0},
};

// The sum of the chains of so many products of src[k,m] weights[k,n].
float SumOfChains(const Written& one, int64_t m, int64_t n, int64_t products, const float* src,
                  const float* weights) {
  float total = 0, chain = 0;
  for (int64_t k = 0; k < one.k; ++k) {
    chain = std::fma(src[k * one.m + m], weights[k * one.n + n], chain);
    if ((k + 1) % products != 0 && k + 1 < one.k) continue;
    total += chain;
    chain = 0;
  }
  return total;
}

// dst[m,n] is one chain, or the sum of those of parts of K; what lies between rows stays.
void ExpectChains(const Written& one, cpu::Isa isa, bool adds_parts) {
  std::vector<float> src(one.k * one.m), weights(one.k * one.n);
  for (size_t i = 0; i < src.size(); ++i) src[i] = Element(static_cast<int64_t>(i));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = Element(static_cast<int64_t>(i) + 5);
  const StridedProduct::Shape shape = {.m = one.m,
                                       .n = one.n,
                                       .k = one.k,
                                       .src_row = 1,
                                       .src_k = one.m,
                                       .weights_k = one.n,
                                       .weights_n = 1,
                                       .dst_row = one.dst_row,
                                       .bias = false,
                                       .adds_parts = adds_parts,
                                       .read_late = adds_parts,
                                       .post_ops = {}};
  const auto product = StridedProduct::Create("test", VectorUnit::Of(isa), shape);
  ASSERT_TRUE(product.ok()) << product.status();
  auto buffer = AlignedBuffer::Allocate((one.m * one.dst_row + one.offset) * sizeof(float));
  ASSERT_TRUE(buffer.ok());
  float* const dst = reinterpret_cast<float*>(buffer->data()) + one.offset;
  std::fill(dst, dst + one.m * one.dst_row, 77.0f);
  std::vector<float> sums((*product)->sums_elements());
  for (int64_t piece = 0; piece < (*product)->pieces(); ++piece)
    (*product)->RunPiece(piece, {src.data(), weights.data(), nullptr, nullptr, dst}, sums.data());
  const int64_t products = adds_parts && one.k >= 128 ? 64 : one.k;
  int64_t wrong = 0;
  for (int64_t m = 0; m < one.m; ++m) {
    for (int64_t n = 0; n < one.dst_row; ++n) {
      const float expected =
          n < one.n ? SumOfChains(one, m, n, products, src.data(), weights.data()) : 77.0f;
      wrong += dst[m * one.dst_row + n] != expected;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(StridedProductTest, ResultsAndWeightsThatExceedCachesGiveChainsToo) {
  for (const cpu::Isa isa : {cpu::Isa::kAvx512, cpu::Isa::kAvx2}) {
    if (!cpu::Supports(isa)) continue;
    for (const Written& one : kWritten) {
      SCOPED_TRACE(one.why);
      for (bool adds_parts : {false, true}) ExpectChains(one, isa, adds_parts);
    }
  }
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
}

float Mixed(size_t i) {
  auto bits = static_cast<uint32_t>(i * 2654435761u);
  bits = (bits ^ bits >> 16) * 0x85ebca6bu;
  return static_cast<float>((bits ^ bits >> 13) >> 8) / (1 << 24) - 0.5f;
}

// The relative error (L2) of sums of 4097 products.
double ErrorOfLongSums(cpu::Isa isa, int64_t rows, bool adds_parts) {
  constexpr int64_t kN = 70, kK = 4097;
  std::vector<float> src(rows * kK), weights(kK * kN), dst(rows * kN);
  for (size_t i = 0; i < src.size(); ++i) src[i] = Mixed(i);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = Mixed(i + src.size());
  const StridedProduct::Shape shape = {.m = rows,
                                       .n = kN,
                                       .k = kK,
                                       .src_row = kK,
                                       .src_k = 1,
                                       .weights_k = kN,
                                       .weights_n = 1,
                                       .dst_row = kN,
                                       .bias = false,
                                       .adds_parts = adds_parts,
                                       .post_ops = {}};
  const auto product = StridedProduct::Create("test", VectorUnit::Of(isa), shape);
  EXPECT_TRUE(product.ok()) << product.status();
  std::vector<float> sums((*product)->sums_elements());
  for (int64_t piece = 0; piece < (*product)->pieces(); ++piece) {
    (*product)->RunPiece(piece, {src.data(), weights.data(), nullptr, nullptr, dst.data()},
                         sums.data());
  }
  double off = 0, all = 0;
  for (int64_t i = 0; i < rows * kN; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < kK; ++k)
      sum += double{src[i / kN * kK + k]} * double{weights[k * kN + i % kN]};
    off += (dst[i] - sum) * (dst[i] - sum);
    all += sum * sum;
  }
  return std::sqrt(off / all);
}

// A chain of 64 additions, and one of as many such sums.
TEST(StridedProductTest, ChainsOfPartsRoundLessThanOne) {
  for (const cpu::Isa isa : {cpu::Isa::kAvx512, cpu::Isa::kAvx2}) {
    if (!cpu::Supports(isa)) continue;
    for (int64_t rows : {2, 37}) {
      const double one = ErrorOfLongSums(isa, rows, /*adds_parts=*/false);
      EXPECT_LE(ErrorOfLongSums(isa, rows, /*adds_parts=*/true), one / 2) << rows << " rows";
    }
  }
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
}

}  // namespace
}  // namespace tilewire::testing
