// SPDX-License-Identifier: Apache-2.0
//
// The dot products of AVX-VNNI: their machine code, decoded, and what they compute. Pure; usable in
// a signal handler.
//
//   vpdpbusd  sum += a[0] * b[0] + ... + a[3] * b[3] in each lane, a of u8 and b of s8
//   vpdpwssd  sum += a[0] * b[0] + a[1] * b[1]       in each lane, of s16
//
// Sums are of s32 and wrap around. Source: Intel SDM volume 2.
#ifndef TESTS_SUPPORT_AVX_VNNI_DOT_PRODUCT_H_
#define TESTS_SUPPORT_AVX_VNNI_DOT_PRODUCT_H_

#include <array>
#include <cstdint>
#include <optional>

#include "tests/support/vex/vex.h"

namespace tilewire::testing {

struct DotProduct {
  static constexpr int kLength = 5;  // bytes of the instruction

  bool of_words = false;  // vpdpwssd
  int lanes = 8;          // 4: the upper half of the sum becomes 0
  int sum = 0, a = 0, b = 0;
};

// Decodes a dot product of operands in registers, encoded with VEX, without saturation; empty for
// any other code.
std::optional<DotProduct> DecodeDotProduct(const uint8_t* code);

// A load between the dot products of generated code: vpbroadcastd, or vmovups or vmovdqu, from
// memory.
struct VectorLoad {
  bool broadcasts = false;  // one lane to all
  int lanes = 8;            // 4: the upper half becomes 0
  int to = 0;
  MemoryOperand from;
  int length = 0;  // bytes of the instruction
};

// Encoded with VEX; empty for any other code.
std::optional<VectorLoad> DecodeVectorLoad(const uint8_t* code);

using VectorBytes = std::array<uint8_t, 32>;

VectorBytes Compute(const DotProduct& what, const VectorBytes& sum, const VectorBytes& a,
                    const VectorBytes& b);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_AVX_VNNI_DOT_PRODUCT_H_
