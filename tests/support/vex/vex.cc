// SPDX-License-Identifier: Apache-2.0
#include "tests/support/vex/vex.h"

#include <cstring>

namespace tilewire::testing {

VexPrefix::VexPrefix(const uint8_t* code)
    : is_vex(code[0] == 0xC4 || code[0] == 0xC5),
      length(code[0] == 0xC4 ? 3 : 2),
      r(~code[1] >> 7 & 1),
      x(length == 3 ? ~code[1] >> 6 & 1 : 0),
      b(length == 3 ? ~code[1] >> 5 & 1 : 0),
      map(length == 3 ? code[1] & 31 : kMap0F),
      w(length == 3 ? code[2] >> 7 : 0),
      v(~code[length - 1] >> 3 & 15),
      l(code[length - 1] >> 2 & 1),
      pp(code[length - 1] & 3) {}

const uint8_t* DecodeMemoryOperand(const uint8_t* modrm, UpperBits upper, MemoryOperand* to) {
  const int mod = modrm[0] >> 6, rm = modrm[0] & 7;
  const bool has_sib = rm == 4;
  if (mod == 3) return nullptr;
  const uint8_t* next = modrm + 1;
  int base = rm;
  if (has_sib) {
    const int index = (*next >> 3 & 7) | upper.x << 3;
    to->scale = *next >> 6;
    to->index = index == 4 ? MemoryOperand::kNone : index;
    base = *next++ & 7;
  }
  int displacement_bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  to->base = base | upper.b << 3;
  if (mod == 0 && base == 5) {
    to->base = has_sib ? MemoryOperand::kNone : MemoryOperand::kRip;
    displacement_bytes = 4;
  }
  if (displacement_bytes == 1) to->displacement = static_cast<int8_t>(*next);
  if (displacement_bytes == 4) std::memcpy(&to->displacement, next, 4);
  return next + displacement_bytes;
}

greg_t& RegisterOf(greg_t* registers, int encoded) {
  constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return registers[kOrder[encoded]];
}

int64_t IndexOf(const MemoryOperand& operand, greg_t* registers) {
  if (operand.index == MemoryOperand::kNone) return 0;
  return static_cast<int64_t>(static_cast<uint64_t>(RegisterOf(registers, operand.index))
                              << operand.scale);
}

std::byte* AddressWithoutIndex(const MemoryOperand& operand, greg_t* registers, int length) {
  uint64_t address = static_cast<uint64_t>(int64_t{operand.displacement});
  if (operand.base == MemoryOperand::kRip) {
    address += static_cast<uint64_t>(registers[REG_RIP]) + length;
  } else if (operand.base != MemoryOperand::kNone) {
    address += static_cast<uint64_t>(RegisterOf(registers, operand.base));
  }
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace tilewire::testing
