// SPDX-License-Identifier: Apache-2.0
//
// Machine code as the software that runs it in tests reads it: the VEX prefix, an operand in
// memory, and registers of interrupted code. Usable in a signal handler.
// Source: Intel SDM volume 2, chapter 2.
#ifndef TESTS_SUPPORT_VEX_VEX_H_
#define TESTS_SUPPORT_VEX_VEX_H_

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace tilewire::testing {

// The fields of C4, then ~R ~X ~B and the map, then W ~vvvv L pp; or of C5, then ~R ~vvvv L pp.
// After them the opcode and ModRM.
struct VexPrefix {
  static constexpr int kMap0F = 1, kMap0F38 = 2;
  static constexpr int kNoPrefix = 0, k66 = 1, kF3 = 2, kF2 = 3;  // pp

  explicit VexPrefix(const uint8_t* code);

  bool is_vex;
  int length;  // bytes: 2 or 3
  int r, x, b, map, w, v, l, pp;
};

// The upper bits of the registers of an operand in memory, from a VEX or REX prefix.
struct UpperBits {
  int x = 0, b = 0;  // of the index and of the base
};

// base + displacement + (index << scale). Registers as they are encoded, rax = 0 to r15 = 15.
struct MemoryOperand {
  static constexpr int kNone = -1, kRip = 16;

  int base = kNone, index = kNone, scale = 0;
  int32_t displacement = 0;
};

// Reads ModRM, SIB and displacement. Returns where they end, or null where the operand is a
// register.
const uint8_t* DecodeMemoryOperand(const uint8_t* modrm, UpperBits upper, MemoryOperand* to);

// A register of interrupted code, and index << scale and the rest of an address in it; `length` is
// that of the instruction at RIP.
greg_t& RegisterOf(greg_t* registers, int encoded);
int64_t IndexOf(const MemoryOperand& operand, greg_t* registers);
std::byte* AddressWithoutIndex(const MemoryOperand& operand, greg_t* registers, int length);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_VEX_VEX_H_
