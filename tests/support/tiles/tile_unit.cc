// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiles/tile_unit.h"

#include <immintrin.h>

#include <cstring>
#include <initializer_list>

namespace tilewire::testing {
namespace {

constexpr unsigned kDefaultMxcsr = 0x1F80;  // to nearest even

template <typename Element>
Element At(const std::byte* row, int index) {
  Element element;
  std::memcpy(&element, row + index * sizeof(Element), sizeof(Element));
  return element;
}

template <typename Element>
void Set(std::byte* row, int index, Element element) {
  std::memcpy(row + index * sizeof(Element), &element, sizeof(Element));
}

int32_t Byte(const std::byte* row, int index, bool is_signed) {
  return is_signed ? int32_t{At<int8_t>(row, index)} : int32_t{At<uint8_t>(row, index)};
}

// Functions that compute 16 columns at a time; every machine that emulates tiles has these vectors.
#define TILEWIRE_LANES __attribute__((target("avx512f"), always_inline)) inline

TILEWIRE_LANES __m512 Flushed(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i sign = _mm512_and_epi32(bits, _mm512_set1_epi32(INT32_MIN));
  const __mmask16 stays = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x7F800000));
  return _mm512_castsi512_ps(_mm512_mask_mov_epi32(sign, stays, bits));
}

TILEWIRE_LANES __m512 FlushedFma(__m512i a, __m512i b, __m512 sum) {
  return Flushed(_mm512_fmadd_ps(Flushed(_mm512_castsi512_ps(a)), Flushed(_mm512_castsi512_ps(b)),
                                 Flushed(sum)));
}

TILEWIRE_LANES __m512 FlushedSum(__m512 a, __m512 b) {
  return Flushed(_mm512_add_ps(Flushed(a), Flushed(b)));
}

// A row of sums. A function of its own, so that no operation moves out of the stretch with the
// default MXCSR.
__attribute__((target("avx512f"), noinline)) void AddBf16(const std::byte* a,
                                                          const std::byte (*b)[64], int pairs,
                                                          std::byte* sums) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  __m512 even = _mm512_setzero_ps(), odd = even;
  for (int k = 0; k < pairs; ++k) {
    const __m512i pair = _mm512_set1_epi32(At<int32_t>(a, k)), row = _mm512_loadu_si512(b[k]);
    even = FlushedFma(_mm512_slli_epi32(pair, 16), _mm512_slli_epi32(row, 16), even);
    odd = FlushedFma(_mm512_and_epi32(pair, upper), _mm512_and_epi32(row, upper), odd);
  }
  _mm512_storeu_ps(sums, FlushedSum(_mm512_loadu_ps(sums), FlushedSum(even, odd)));
}
#undef TILEWIRE_LANES

bool IsValid(const TileConfig& config) {
  if (config.palette > 1) return false;
  for (uint8_t byte : config.reserved) {
    if (byte != 0) return false;
  }
  for (int tile = 0; tile < 16; ++tile) {
    const int rows = config.rows[tile], bytes = config.row_bytes[tile];
    if (tile >= TileUnit::kTiles && (rows != 0 || bytes != 0)) return false;
    if (rows > TileUnit::kRows || bytes > TileUnit::kRowBytes) return false;
    if ((rows == 0) != (bytes == 0)) return false;
  }
  return true;
}

}  // namespace

bool TileUnit::LoadConfig(const TileConfig& config) {
  if (config.palette != 0 && !IsValid(config)) return false;
  Release();
  if (config.palette != 0) config_ = config;
  return true;
}

void TileUnit::Release() {
  config_ = {};
  std::memset(tiles_, 0, sizeof(tiles_));
}

bool TileUnit::Zero(int tile) {
  if (!IsConfigured(tile)) return false;
  std::memset(tiles_[tile], 0, sizeof(tiles_[tile]));
  config_.start_row = 0;
  return true;
}

bool TileUnit::Load(int tile, const std::byte* base, int64_t stride) {
  if (!IsConfigured(tile)) return false;
  for (int row = config_.start_row; row < config_.rows[tile]; ++row) {
    std::memcpy(tiles_[tile][row], base + row * stride, config_.row_bytes[tile]);
  }
  ZeroAround(tile);
  return true;
}

bool TileUnit::Store(int tile, std::byte* base, int64_t stride) {
  if (!IsConfigured(tile)) return false;
  for (int row = config_.start_row; row < config_.rows[tile]; ++row) {
    std::memcpy(base + row * stride, tiles_[tile][row], config_.row_bytes[tile]);
  }
  config_.start_row = 0;
  return true;
}

void TileUnit::ZeroAround(int tile) {
  const int rows = config_.rows[tile], bytes = config_.row_bytes[tile];
  for (int row = 0; row < rows; ++row) std::memset(tiles_[tile][row] + bytes, 0, kRowBytes - bytes);
  std::memset(tiles_[tile] + rows, 0, (kRows - rows) * sizeof(Row));
  config_.start_row = 0;
}

bool TileUnit::Fit(int to, int a, int b) const {
  if (to == a || to == b || a == b) return false;
  for (int tile : {to, a, b}) {
    if (!IsConfigured(tile) || config_.row_bytes[tile] % 4 != 0) return false;
  }
  return config_.rows[to] == config_.rows[a] && config_.row_bytes[to] == config_.row_bytes[b] &&
         config_.row_bytes[a] / 4 == config_.rows[b];
}

bool TileUnit::MultiplyBytes(int to, int a, int b, bool a_is_signed, bool b_is_signed) {
  if (!Fit(to, a, b)) return false;
  for (int m = 0; m < config_.rows[to]; ++m) {
    for (int n = 0; n < config_.row_bytes[to] / 4; ++n) {
      auto sum = At<uint32_t>(tiles_[to][m], n);
      for (int k = 0; k < config_.rows[b]; ++k) {
        for (int i = 0; i < 4; ++i) {
          sum += static_cast<uint32_t>(Byte(tiles_[a][m], 4 * k + i, a_is_signed) *
                                       Byte(tiles_[b][k], 4 * n + i, b_is_signed));
        }
      }
      Set(tiles_[to][m], n, sum);
    }
  }
  ZeroAround(to);
  return true;
}

bool TileUnit::MultiplyBf16(int to, int a, int b) {
  if (!Fit(to, a, b)) return false;
  const unsigned callers_mxcsr = _mm_getcsr();
  _mm_setcsr(kDefaultMxcsr);
  for (int m = 0; m < config_.rows[to]; ++m)
    AddBf16(tiles_[a][m], tiles_[b], config_.rows[b], tiles_[to][m]);
  _mm_setcsr(callers_mxcsr);
  ZeroAround(to);
  return true;
}

}  // namespace tilewire::testing
