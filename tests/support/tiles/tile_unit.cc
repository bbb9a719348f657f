// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiles/tile_unit.h"

#include <xmmintrin.h>

#include <bit>
#include <cmath>
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

float FromBf16(const std::byte* row, int index) {
  return std::bit_cast<float>(uint32_t{At<uint16_t>(row, index)} << 16);
}

float Flushed(float x) {
  return (std::bit_cast<uint32_t>(x) & 0x7F800000) == 0 ? std::copysign(0.0f, x) : x;
}

float FlushedFma(float a, float b, float sum) {
  return Flushed(std::fma(Flushed(a), Flushed(b), Flushed(sum)));
}

float FlushedSum(float a, float b) { return Flushed(Flushed(a) + Flushed(b)); }

// A function of its own, so that no operation moves out of the stretch with the default MXCSR.
__attribute__((noinline)) float SumOfBf16(const std::byte* a, const std::byte (*b)[64], int pairs,
                                          int n, float sum) {
  float even = 0, odd = 0;
  for (int k = 0; k < pairs; ++k) {
    even = FlushedFma(FromBf16(a, 2 * k), FromBf16(b[k], 2 * n), even);
    odd = FlushedFma(FromBf16(a, 2 * k + 1), FromBf16(b[k], 2 * n + 1), odd);
  }
  return FlushedSum(sum, FlushedSum(even, odd));
}

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
  for (int m = 0; m < config_.rows[to]; ++m) {
    for (int n = 0; n < config_.row_bytes[to] / 4; ++n) {
      const auto sum = At<float>(tiles_[to][m], n);
      Set(tiles_[to][m], n, SumOfBf16(tiles_[a][m], tiles_[b], config_.rows[b], n, sum));
    }
  }
  _mm_setcsr(callers_mxcsr);
  ZeroAround(to);
  return true;
}

}  // namespace tilewire::testing
