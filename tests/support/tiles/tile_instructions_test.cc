// SPDX-License-Identifier: Apache-2.0
//
// Every form of the instructions on tiles as generated code has them: against plain sums, and
// against the bit model. With tiles in the machine, this compares the model with the hardware.
#include <xmmintrin.h>

#include <array>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"
#include "gtest/gtest.h"
#include "tests/support/tiles/tile_emulator.h"
#include "tests/support/tiles/tile_unit.h"

namespace tilewire::testing {
namespace {

// The argument of generated code, which gets it in rdi.
struct Operands {
  const void* config;
  void *c, *a, *b;
  void* stored_config;
};

// A function whose body is a closure; it keeps the tiles' configuration to itself.
class TileCode final : public jit::Generator {
 public:
  using Body = std::function<void(TileCode*)>;
  explicit TileCode(const Body& body) : Generator("test/tiles"), body_(body) {}

 private:
  void Emit() override {
    Preamble();
    body_(this);
    tilerelease();
    Postamble();
  }
  const Body& body_;
};

void RunTileCode(const TileCode::Body& body, const Operands& operands) {
  const auto code = jit::Compile<TileCode>(body);
  ASSERT_TRUE(code.ok()) << code.status();
  (*code)->entry<void (*)(const Operands*)>()(&operands);
}

struct ProductShape {
  int rows, steps, columns;  // of a, of the reduction in 4 bytes, of b
};
constexpr ProductShape kProductShapes[] = {{16, 16, 16}, {1, 16, 16},  {16, 1, 16}, {16, 16, 1},
                                           {7, 5, 11},   {15, 16, 16}, {1, 1, 1}};

TileConfig ConfigOf(const ProductShape& shape, int c, int a, int b) {
  TileConfig config;
  config.palette = 1;
  config.rows[c] = config.rows[a] = static_cast<uint8_t>(shape.rows);
  config.rows[b] = static_cast<uint8_t>(shape.steps);
  config.row_bytes[c] = config.row_bytes[b] = static_cast<uint16_t>(4 * shape.columns);
  config.row_bytes[a] = static_cast<uint16_t>(4 * shape.steps);
  return config;
}

using Tile = std::array<std::byte, 1024>;  // 16 rows of 64 bytes

template <typename Element>
Element ElementOf(const Tile& tile, int row, int index) {
  Element element;
  std::memcpy(&element, tile.data() + row * 64 + index * sizeof(Element), sizeof(Element));
  return element;
}

Tile RandomTile(std::mt19937_64* random) {
  Tile tile;
  for (std::byte& byte : tile) byte = static_cast<std::byte>((*random)());
  return tile;
}

using Product =
    std::function<void(TileCode*, const Xbyak::Tmm&, const Xbyak::Tmm&, const Xbyak::Tmm&)>;

// c += a * b by generated code, with the three in the tiles of these numbers.
void MultiplyByCode(const Product& product, const ProductShape& shape, std::array<int, 3> tiles,
                    Tile* c, Tile* a, Tile* b) {
  const TileConfig config = ConfigOf(shape, tiles[0], tiles[1], tiles[2]);
  const Xbyak::Tmm to(tiles[0]), first(tiles[1]), second(tiles[2]);
  RunTileCode(
      [&](TileCode* g) {
        g->mov(g->rax, g->ptr[g->rdi + offsetof(Operands, config)]);
        g->ldtilecfg(g->ptr[g->rax]);
        g->mov(g->rcx, 64);
        g->mov(g->rdx, g->ptr[g->rdi + offsetof(Operands, c)]);
        g->tileloadd(to, g->ptr[g->rdx + g->rcx]);
        g->mov(g->rax, g->ptr[g->rdi + offsetof(Operands, a)]);
        g->tileloadd(first, g->ptr[g->rax + g->rcx]);
        g->mov(g->rax, g->ptr[g->rdi + offsetof(Operands, b)]);
        g->tileloaddt1(second, g->ptr[g->rax + g->rcx]);
        product(g, to, first, second);
        g->tilestored(g->ptr[g->rdx + g->rcx], to);
      },
      {.config = &config,
       .c = c->data(),
       .a = a->data(),
       .b = b->data(),
       .stored_config = nullptr});
}

class TileInstructionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks avx512_bf16";
  }
};

struct ByteProduct {
  bool a_is_signed, b_is_signed;
  Product product;
};

std::vector<ByteProduct> ByteProducts() {
  const auto form = [](auto member) {
    return [member](TileCode* g, const Xbyak::Tmm& c, const Xbyak::Tmm& a, const Xbyak::Tmm& b) {
      (g->*member)(c, a, b);
    };
  };
  return {{true, true, form(&TileCode::tdpbssd)},
          {true, false, form(&TileCode::tdpbsud)},
          {false, true, form(&TileCode::tdpbusd)},
          {false, false, form(&TileCode::tdpbuud)}};
}

int32_t ByteOf(const Tile& tile, int row, int index, bool is_signed) {
  return is_signed ? int32_t{ElementOf<int8_t>(tile, row, index)}
                   : int32_t{ElementOf<uint8_t>(tile, row, index)};
}

TEST_F(TileInstructionsTest, ProductsOfBytesAreTheirSumsModulo2To32) {
  std::mt19937_64 random(1);
  for (const ByteProduct& form : ByteProducts()) {
    for (const ProductShape& shape : kProductShapes) {
      SCOPED_TRACE(absl::StrCat(shape.rows, " ", shape.steps, " ", shape.columns, " signed ",
                                form.a_is_signed, form.b_is_signed));
      Tile a = RandomTile(&random), b = RandomTile(&random), c = RandomTile(&random);
      const Tile before = c;
      MultiplyByCode(form.product, shape, {0, 4, 6}, &c, &a, &b);
      for (int m = 0; m < 16; ++m) {
        for (int n = 0; n < 16; ++n) {
          auto sum = ElementOf<uint32_t>(before, m, n);
          const bool inside = m < shape.rows && n < shape.columns;
          for (int k = 0; inside && k < 4 * shape.steps; ++k) {
            sum += static_cast<uint32_t>(ByteOf(a, m, k, form.a_is_signed) *
                                         ByteOf(b, k / 4, 4 * n + k % 4, form.b_is_signed));
          }
          ASSERT_EQ(ElementOf<uint32_t>(c, m, n), sum) << m << " " << n;
        }
      }
    }
  }
}

// Every operand in every tile.
TEST_F(TileInstructionsTest, AnyThreeTilesMultiply) {
  std::mt19937_64 random(2);
  const ByteProduct form = ByteProducts()[2];
  Tile a = RandomTile(&random), b = RandomTile(&random), expected = {};
  MultiplyByCode(form.product, kProductShapes[0], {0, 4, 6}, &expected, &a, &b);
  for (int tile = 0; tile < 8; ++tile) {
    Tile c = {};
    MultiplyByCode(form.product, kProductShapes[0], {tile, (tile + 3) % 8, (tile + 5) % 8}, &c, &a,
                   &b);
    EXPECT_EQ(c, expected) << tile;
  }
}

enum class Numbers { kUsual, kWide, kNearDenormal, kCancelling, kAnyBits };

uint16_t Bf16Of(Numbers kind, std::mt19937_64* random) {
  if (kind == Numbers::kAnyBits) return static_cast<uint16_t>((*random)());
  float number = std::normal_distribution<float>()(*random);
  if (kind == Numbers::kWide)
    number = std::ldexp(number, std::uniform_int_distribution<int>(-60, 60)(*random));
  if (kind == Numbers::kNearDenormal)
    number = std::ldexp(number, std::uniform_int_distribution<int>(-68, -58)(*random));
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
}

Tile Bf16Tile(Numbers kind, std::mt19937_64* random) {
  Tile tile;
  for (int i = 0; i < 512; ++i) {
    uint16_t element = Bf16Of(kind, random);
    if (kind == Numbers::kCancelling && i % 4 >= 2) {
      element = ElementOf<uint16_t>(tile, 0, i - 2) ^ 0x8000;
    }
    std::memcpy(tile.data() + 2 * i, &element, 2);
  }
  return tile;
}

void MultiplyBf16ByModel(const ProductShape& shape, Tile* c, const Tile& a, const Tile& b) {
  TileUnit unit;
  ASSERT_TRUE(unit.LoadConfig(ConfigOf(shape, 0, 4, 6)));
  ASSERT_TRUE(unit.Load(0, c->data(), 64) && unit.Load(4, a.data(), 64) &&
              unit.Load(6, b.data(), 64));
  ASSERT_TRUE(unit.MultiplyBf16(0, 4, 6));
  ASSERT_TRUE(unit.Store(0, c->data(), 64));
}

const Product kBf16Product = [](TileCode* g, const Xbyak::Tmm& c, const Xbyak::Tmm& a,
                                const Xbyak::Tmm& b) { g->tdpbf16ps(c, a, b); };

TEST_F(TileInstructionsTest, ProductsOfBf16AreThoseOfTheModelBitForBit) {
  std::mt19937_64 random(3);
  for (Numbers kind : {Numbers::kUsual, Numbers::kWide, Numbers::kNearDenormal,
                       Numbers::kCancelling, Numbers::kAnyBits}) {
    for (const ProductShape& shape : kProductShapes) {
      Tile a = Bf16Tile(kind, &random), b = Bf16Tile(kind, &random), c = Bf16Tile(kind, &random);
      Tile expected = c;
      MultiplyBf16ByModel(shape, &expected, a, b);
      MultiplyByCode(kBf16Product, shape, {1, 2, 3}, &c, &a, &b);
      for (int i = 0; i < 256; ++i) {
        const auto result = ElementOf<float>(c, 0, i), wanted = ElementOf<float>(expected, 0, i);
        if (std::isnan(wanted) && std::isnan(result)) continue;
        ASSERT_EQ(std::bit_cast<uint32_t>(result), std::bit_cast<uint32_t>(wanted))
            << static_cast<int>(kind) << " element " << i;
      }
    }
  }
}

// A row times a column of at most 32 elements, by generated code.
float DotByCode(float sum, const std::vector<float>& a, const std::vector<float>& b) {
  Tile first = {}, second = {}, c = {};
  std::memcpy(c.data(), &sum, 4);
  for (size_t i = 0; i < a.size(); ++i) {
    std::memcpy(first.data() + 2 * i, reinterpret_cast<const char*>(&a[i]) + 2, 2);
    std::memcpy(second.data() + i / 2 * 64 + i % 2 * 2, reinterpret_cast<const char*>(&b[i]) + 2,
                2);
  }
  MultiplyByCode(kBf16Product, {1, 16, 16}, {0, 1, 2}, &c, &first, &second);
  return ElementOf<float>(c, 0, 0);
}

// Numbers worked out by hand.
TEST_F(TileInstructionsTest, Bf16AddsEvenAndOddApartAndTakesDenormalsForZero) {
  const float big = std::ldexp(1.0f, 24), tiny = std::ldexp(1.0f, -130);
  // In one chain, big + 1 would lose the 1, which comes back after -big.
  EXPECT_EQ(DotByCode(0, {big, 1, -big}, {1, 1, 1}), 1.0f);
  // Within the even chain it is lost.
  EXPECT_EQ(DotByCode(0, {big, 0, 1, 0, -big}, {1, 0, 1, 0, 1}), 0.0f);
  // Both chains are added before they meet the sum: half a unit each, together one.
  EXPECT_EQ(DotByCode(big, {1, 1}, {1, 1}), big + 2);
  EXPECT_EQ(DotByCode(0, {tiny}, {std::ldexp(1.0f, 20)}), 0.0f);                    // an operand
  EXPECT_EQ(DotByCode(0, {std::ldexp(1.0f, -70)}, {std::ldexp(1.0f, -70)}), 0.0f);  // a result
  EXPECT_EQ(DotByCode(tiny, {1}, {0}), 0.0f);                                       // a sum
  EXPECT_EQ(DotByCode(0, {INFINITY}, {1}), INFINITY);
  EXPECT_TRUE(std::isnan(DotByCode(0, {INFINITY}, {0})));
}

TEST_F(TileInstructionsTest, Bf16IgnoresHowTheThreadRounds) {
  std::mt19937_64 random(4);
  Tile a = Bf16Tile(Numbers::kUsual, &random), b = Bf16Tile(Numbers::kUsual, &random);
  Tile nearest = {}, upwards = {};
  MultiplyByCode(kBf16Product, {16, 16, 16}, {0, 1, 2}, &nearest, &a, &b);
  const unsigned mxcsr = _mm_getcsr();
  _mm_setcsr(mxcsr | 0x4000);
  MultiplyByCode(kBf16Product, {16, 16, 16}, {0, 1, 2}, &upwards, &a, &b);
  Tile by_model = {};
  MultiplyBf16ByModel({16, 16, 16}, &by_model, a, b);
  _mm_setcsr(mxcsr);
  EXPECT_EQ(nearest, upwards);
  EXPECT_EQ(nearest, by_model);
}

// Loads 5 rows of 12 bytes and stores them elsewhere, by one address of every kind.
void CopyBy(int base, int index, int scale, int displacement) {
  SCOPED_TRACE(absl::StrCat("base ", base, " index ", index, " scale ", scale, " displacement ",
                            displacement));
  constexpr int kRows = 5, kBytes = 12, kStride = 24;
  TileConfig config;
  config.palette = 1;
  config.rows[3] = kRows;
  config.row_bytes[3] = kBytes;
  std::vector<uint8_t> from(kRows * kStride), to(from.size(), 0xEE);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i + 1);
  const auto move = [&](TileCode* g, void* memory, bool stores) {
    const Xbyak::Reg64 of_base(base), of_index(index);
    g->mov(of_base, reinterpret_cast<uint64_t>(memory) - displacement);
    g->mov(of_index, kStride / scale);
    const Xbyak::Address address = g->ptr[of_base + of_index * scale + displacement];
    stores ? g->tilestored(address, g->tmm3) : g->tileloadd(g->tmm3, address);
  };
  RunTileCode(
      [&](TileCode* g) {
        g->mov(g->rax, g->ptr[g->rdi]);
        g->ldtilecfg(g->ptr[g->rax]);
        move(g, from.data(), /*stores=*/false);
        move(g, to.data(), /*stores=*/true);
      },
      {.config = &config, .c = nullptr, .a = nullptr, .b = nullptr, .stored_config = nullptr});
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kStride; ++i) {
      const int at = row * kStride + i;
      ASSERT_EQ(to[at], i < kBytes ? from[at] : 0xEE) << row << " " << i;
    }
  }
}

TEST_F(TileInstructionsTest, EveryFormOfAddressOfLoadsAndStores) {
  constexpr int kRsp = 4;
  for (int base = 0; base < 16; ++base) {
    if (base == kRsp) continue;  // below
    for (int index = 0; index < 16; ++index) {
      if (index == kRsp || index == base) continue;
      for (int displacement : {0, 64, -128, 4096, -5000}) CopyBy(base, index, 1, displacement);
    }
  }
  for (int scale : {2, 4, 8}) CopyBy(13, 9, scale, 64);
}

// A kernel spills its sums to the stack.
TEST_F(TileInstructionsTest, TheStackTakesTiles) {
  std::mt19937_64 random(5);
  Tile from = RandomTile(&random), to = {};
  const TileConfig config = ConfigOf({16, 16, 16}, 0, 1, 2);
  RunTileCode(
      [](TileCode* g) {
        constexpr int kBytes = 2048;
        g->sub(g->rsp, kBytes);
        g->mov(g->rax, g->ptr[g->rdi]);
        g->ldtilecfg(g->ptr[g->rax]);
        g->mov(g->r14, 64);
        g->mov(g->rax, g->ptr[g->rdi + offsetof(Operands, a)]);
        g->tileloadd(g->tmm0, g->ptr[g->rax + g->r14]);
        g->tilestored(g->ptr[g->rsp + g->r14 + 1024], g->tmm0);
        g->tilezero(g->tmm0);
        g->tileloadd(g->tmm1, g->ptr[g->rsp + g->r14 + 1024]);
        g->mov(g->rax, g->ptr[g->rdi + offsetof(Operands, c)]);
        g->tilestored(g->ptr[g->rax + g->r14], g->tmm1);
        g->add(g->rsp, kBytes);
      },
      {.config = &config,
       .c = to.data(),
       .a = from.data(),
       .b = nullptr,
       .stored_config = nullptr});
  EXPECT_EQ(from, to);
}

// Elements outside a tile's rows and bytes are zero after a load, and a store leaves it alone.
TEST_F(TileInstructionsTest, ConfigurationsAreLoadedStoredAndReleased) {
  const TileConfig config = ConfigOf({7, 5, 11}, 0, 1, 2);
  TileConfig loaded, released;
  RunTileCode(
      [&](TileCode* g) {
        Xbyak::Label table, code;
        g->jmp(code, g->T_NEAR);
        g->align(64);
        g->L(table);
        for (size_t i = 0; i < sizeof(config); ++i)
          g->db(reinterpret_cast<const uint8_t*>(&config)[i]);
        g->L(code);
        g->ldtilecfg(g->ptr[g->rip + table]);
        g->mov(g->r12, g->ptr[g->rdi + offsetof(Operands, stored_config)]);
        g->sttilecfg(g->ptr[g->r12]);
        g->tilerelease();
        g->mov(g->r13, g->ptr[g->rdi + offsetof(Operands, c)]);
        g->sttilecfg(g->ptr[g->r13 + 0]);
      },
      {.config = nullptr, .c = &released, .a = nullptr, .b = nullptr, .stored_config = &loaded});
  const TileConfig none;
  EXPECT_EQ(std::memcmp(&loaded, &config, sizeof(config)), 0);
  EXPECT_EQ(std::memcmp(&released, &none, sizeof(none)), 0);
}

TEST_F(TileInstructionsTest, TilesWithoutAConfigurationAreIllegal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(RunTileCode([](TileCode* g) { g->tilezero(g->tmm5); }, {}),
              ::testing::KilledBySignal(SIGILL), "");
}

TEST(TileUnitTest, RefusesWhatTheHardwareRefuses) {
  TileUnit unit;
  TileConfig config = ConfigOf({7, 5, 11}, 0, 1, 2);
  EXPECT_FALSE(unit.Zero(0));  // nothing is configured
  ASSERT_TRUE(unit.LoadConfig(config));
  EXPECT_TRUE(unit.MultiplyBytes(0, 1, 2, true, true));
  EXPECT_FALSE(unit.Zero(3));
  EXPECT_FALSE(unit.MultiplyBytes(0, 2, 1, true, true));  // shapes do not fit
  EXPECT_FALSE(unit.MultiplyBytes(0, 1, 1, true, true));
  const auto refuses = [&](auto change) {
    TileConfig changed = config;
    change(&changed);
    return !unit.LoadConfig(changed);
  };
  EXPECT_TRUE(refuses([](TileConfig* c) { c->palette = 2; }));
  EXPECT_TRUE(refuses([](TileConfig* c) { c->rows[0] = 17; }));
  EXPECT_TRUE(refuses([](TileConfig* c) { c->row_bytes[0] = 65; }));
  EXPECT_TRUE(refuses([](TileConfig* c) { c->rows[5] = 1; }));
  EXPECT_TRUE(refuses([](TileConfig* c) { c->rows[8] = c->row_bytes[8] = 4; }));
  EXPECT_TRUE(refuses([](TileConfig* c) { c->reserved[0] = 1; }));
  EXPECT_FALSE(refuses([](TileConfig* c) { c->palette = 0; }));
  EXPECT_FALSE(unit.Zero(0));  // palette 0 released them
}

}  // namespace
}  // namespace tilewire::testing
