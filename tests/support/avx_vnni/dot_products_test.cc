// SPDX-License-Identifier: Apache-2.0
//
// The forms of dot products that generated code has, against plain sums, whether the machine or the
// software runs them; and, where the machine has AVX-512 VNNI, against that.
#include <cstring>
#include <random>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"
#include "engine/jit/vector_unit.h"
#include "gtest/gtest.h"
#include "tests/support/avx_vnni/dot_product.h"
#include "tests/support/avx_vnni/dot_product_emulator.h"

namespace tilewire::testing {
namespace {

struct Operands {
  VectorBytes sum, a, b;
  std::array<uint8_t, 4> broadcast;
};

// sum += a * b + broadcast * b + b * a
class DotProductCode final : public jit::Generator {
 public:
  DotProductCode(const VectorUnit& unit, const DotProduct& what)
      : Generator("test/dot_products"), unit_(unit), what_(what) {}

 private:
  void Emit() override {
    const auto sum = unit_.Vector(what_.sum), a = unit_.Vector(what_.a), b = unit_.Vector(what_.b);
    vmovdqu(Xbyak::Ymm(what_.sum), ptr[rdi + static_cast<int>(offsetof(Operands, sum))]);
    vmovdqu(Xbyak::Ymm(what_.a), ptr[rdi + static_cast<int>(offsetof(Operands, a))]);
    vmovdqu(Xbyak::Ymm(what_.b), ptr[rdi + static_cast<int>(offsetof(Operands, b))]);
    Add(sum, a, b);
    // As in generated code: a product after another one and a broadcast, or whole loads.
    vpbroadcastd(a, ptr[rdi + static_cast<int>(offsetof(Operands, broadcast))]);
    Add(sum, a, b);
    vmovups(b, ptr[rdi + static_cast<int>(offsetof(Operands, a))]);
    vmovdqu(a, ptr[rdi + static_cast<int>(offsetof(Operands, b))]);
    Add(sum, a, b);
    vmovdqu(ptr[rdi + static_cast<int>(offsetof(Operands, sum))], Xbyak::Ymm(what_.sum));
    vzeroupper();
    ret();
  }

  void Add(const Xbyak::Xmm& sum, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
    what_.of_words ? unit_.AddWordProducts(this, sum, a, b) : unit_.AddDotProducts(this, sum, a, b);
  }

  const VectorUnit unit_;
  const DotProduct what_;
};

VectorBytes ResultOf(cpu::Isa isa, const DotProduct& what, Operands operands) {
  const auto code =
      jit::Compile<DotProductCode>(VectorUnit::Of(isa).WithBytes(4 * what.lanes), what);
  if (!code.ok()) {
    ADD_FAILURE() << code.status();
    return {};
  }
  (*code)->entry<void (*)(Operands*)>()(&operands);
  return operands.sum;
}

std::vector<DotProduct> Forms() {
  std::vector<DotProduct> forms;
  for (const bool of_words : {false, true}) {
    for (const int lanes : {4, 8}) {
      forms.push_back({of_words, lanes, 0, 1, 2});
      forms.push_back({of_words, lanes, 15, 3, 9});
      forms.push_back({of_words, lanes, 7, 12, 14});
    }
  }
  return forms;
}

VectorBytes RandomVector(std::mt19937* random) {
  VectorBytes vector;
  for (uint8_t& byte : vector) byte = static_cast<uint8_t>((*random)());
  return vector;
}

TEST(DotProductsTest, AreWhatTheSoftwareComputes) {
  if (!cpu::Supports(cpu::Isa::kAvx2Vnni)) GTEST_SKIP() << "the CPU lacks avx2";
  std::mt19937 random(1);
  for (const DotProduct& form : Forms()) {
    for (int i = 0; i < 100; ++i) {
      const Operands operands = {
          RandomVector(&random), RandomVector(&random), RandomVector(&random), {1, 130, 3, 200}};
      VectorBytes broadcast;
      for (int b = 0; b < 32; ++b) broadcast[b] = operands.broadcast[b % 4];
      const VectorBytes first = Compute(form, operands.sum, operands.a, operands.b);
      const VectorBytes second = Compute(form, first, broadcast, operands.b);
      const VectorBytes expected = Compute(form, second, operands.b, operands.a);
      EXPECT_EQ(ResultOf(cpu::Isa::kAvx2Vnni, form, operands), expected);
      if (!cpu::Supports(cpu::Isa::kAvx512Vnni)) continue;
      EXPECT_EQ(ResultOf(cpu::Isa::kAvx512Vnni, form, operands), expected);
    }
  }
}

TEST(DotProductsTest, WrapAroundAndTakeTheSignsOfBytes) {
  const auto sum_of = [](bool of_words, std::array<uint8_t, 4> sum, std::array<uint8_t, 4> a,
                         std::array<uint8_t, 4> b) {
    Operands operands = {};
    std::memcpy(operands.sum.data(), sum.data(), 4);
    std::memcpy(operands.a.data(), a.data(), 4);
    std::memcpy(operands.b.data(), b.data(), 4);
    const VectorBytes result =
        Compute({.of_words = of_words}, operands.sum, operands.a, operands.b);
    int32_t lane;
    std::memcpy(&lane, result.data(), 4);
    return lane;
  };
  EXPECT_EQ(sum_of(false, {1, 0, 0, 0}, {255, 255, 255, 255}, {128, 128, 128, 128}),
            1 - 4 * 255 * 128);
  EXPECT_EQ(sum_of(true, {}, {255, 255, 2, 0}, {3, 0, 255, 255}), -3 - 2);
  EXPECT_EQ(sum_of(false, {255, 255, 255, 127}, {1, 0, 0, 0}, {1, 0, 0, 0}), INT32_MIN);
}

TEST(DotProductsTest, OtherCodeIsNotDecoded) {
  const uint8_t dot_product[] = {0xC4, 0xE2, 0x75, 0x50, 0xC2};
  ASSERT_TRUE(DecodeDotProduct(dot_product));
  for (const auto& [at, value] : std::vector<std::pair<int, uint8_t>>{
           {0, 0xC5}, {1, 0xE1}, {2, 0xF5}, {2, 0x74}, {3, 0x51}, {4, 0x02}}) {
    uint8_t other[5];
    std::memcpy(other, dot_product, sizeof(other));
    other[at] = value;
    EXPECT_FALSE(DecodeDotProduct(other)) << "byte " << at;
  }
}

}  // namespace
}  // namespace tilewire::testing
