// SPDX-License-Identifier: Apache-2.0
//
// Instructions with a VEX prefix of three bytes, as the software that runs them in tests reads
// them: the prefix, and an operand in memory. Usable in a signal handler.
// Source: Intel SDM volume 2, chapter 2.
#ifndef TESTS_SUPPORT_VEX_VEX_H_
#define TESTS_SUPPORT_VEX_VEX_H_

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace tilewire::testing {

// The fields of C4, then ~R ~X ~B and the map, then W ~vvvv L pp; after them the opcode and ModRM.
struct VexPrefix {
  static constexpr int kMap0F38 = 2;
  static constexpr int kNoPrefix = 0, k66 = 1, kF3 = 2, kF2 = 3;  // pp

  explicit VexPrefix(const uint8_t* code);

  bool is_vex;
  int r, x, b, map, w, v, l, pp;
};

// base + displacement + (index << scale). Registers as they are encoded, rax = 0 to r15 = 15.
struct MemoryOperand {
  static constexpr int kNone = -1, kRip = 16;

  int base = kNone, index = kNone, scale = 0;
  int32_t displacement = 0;
};

// Reads ModRM, SIB and displacement. Returns where they end, or null where the operand is a
// register.
const uint8_t* DecodeMemoryOperand(const uint8_t* modrm, const VexPrefix& prefix,
                                   MemoryOperand* to);

// The value of a register of interrupted code, and index << scale and the rest of an address in it;
// `length` is that of the instruction at RIP.
uint64_t RegisterValue(const greg_t* registers, int encoded);
int64_t IndexOf(const MemoryOperand& operand, const greg_t* registers);
std::byte* AddressWithoutIndex(const MemoryOperand& operand, const greg_t* registers, int length);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_VEX_VEX_H_
