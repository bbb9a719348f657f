// SPDX-License-Identifier: Apache-2.0
//
// Matrix tiles (AMX) in plain C++, bit for bit as the hardware computes them: the state of one
// thread and the instructions on it. Products of bytes are exact modulo 2^32:
//
//   to[m][n] += sum over k, i of 0..3 of a[m][4k + i] * b[k][4n + i]
//
// Products of bf16 keep the even and the odd elements of a row apart: with FMA to nearest even, and
// every denormal operand or result taken for 0, whatever MXCSR says,
//
//   even = fma(a[m][2k], b[k][2n], even),  odd = fma(a[m][2k + 1], b[k][2n + 1], odd)  for each k
//   to[m][n] += even + odd
//
// Of NaN results only that they are NaN is defined here.
//
// Thread-compatible. Usable in a signal handler: nothing is allocated or locked.
// Source: Intel SDM volume 2 (LDTILECFG, TDPBUSD, TDPBF16PS, ...), compared with hardware.
#ifndef TESTS_SUPPORT_TILES_TILE_UNIT_H_
#define TESTS_SUPPORT_TILES_TILE_UNIT_H_

#include <cstddef>
#include <cstdint>

namespace tilewire::testing {

// As ldtilecfg reads it.
struct TileConfig {
  uint8_t palette = 0, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

class TileUnit {
 public:
  static constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

  // Each returns false, and changes nothing, where the hardware faults.
  bool LoadConfig(const TileConfig& config);
  TileConfig Config() const { return config_; }  // zeros where nothing is configured
  void Release();
  bool Zero(int tile);
  bool Load(int tile, const std::byte* base, int64_t stride);
  bool Store(int tile, std::byte* base, int64_t stride);
  bool MultiplyBytes(int to, int a, int b, bool a_is_signed, bool b_is_signed);
  bool MultiplyBf16(int to, int a, int b);

 private:
  using Row = std::byte[kRowBytes];

  bool IsConfigured(int tile) const { return config_.palette == 1 && config_.rows[tile] != 0; }
  bool Fit(int to, int a, int b) const;
  void ZeroAround(int tile);  // what lies outside the configured rows and bytes

  TileConfig config_;
  alignas(64) Row tiles_[kTiles][kRows] = {};
};

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_TILES_TILE_UNIT_H_
