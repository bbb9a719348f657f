// SPDX-License-Identifier: Apache-2.0
#include "tests/support/vex/scalar_step.h"

#include <cstdint>
#include <cstring>

#include "tests/support/vex/vex.h"

namespace tilewire::testing {
namespace {

constexpr greg_t kCarry = 1, kParity = 1 << 2, kZero = 1 << 6, kSign = 1 << 7, kOverflow = 1 << 11;

// 0100 WRXB, or none: then all of them are 0.
struct RexPrefix {
  explicit RexPrefix(uint8_t code)
      : length((code & 0xF0) == 0x40 ? 1 : 0),
        w(length & code >> 3),
        r(length & code >> 2),
        x(length & code >> 1),
        b(length & code) {}

  int length;
  int w, r, x, b;
};

// An instruction at RIP: its code after the prefix.
struct ScalarCode {
  explicit ScalarCode(const greg_t* registers)
      : start(reinterpret_cast<const uint8_t*>(registers[REG_RIP])),
        rex(start[0]),
        opcode(start + rex.length) {}

  int Length(const uint8_t* end) const { return static_cast<int>(end - start); }
  int Operation(const uint8_t* modrm) const { return *modrm >> 3 & 7; }
  int RegisterOperand(const uint8_t* modrm) const { return (*modrm & 7) | rex.b << 3; }

  const uint8_t* start;
  RexPrefix rex;
  const uint8_t* opcode;
};

bool IsRegister(const uint8_t* modrm) { return *modrm >> 6 == 3; }

bool StepLea(const ScalarCode& code, greg_t* registers) {
  MemoryOperand operand;
  const uint8_t* const modrm = code.opcode + 1;
  const uint8_t* const end = DecodeMemoryOperand(modrm, {code.rex.x, code.rex.b}, &operand);
  if (end == nullptr || code.rex.w == 0) return false;
  const std::byte* const address =
      AddressWithoutIndex(operand, registers, code.Length(end)) + IndexOf(operand, registers);
  RegisterOf(registers, code.Operation(modrm) | code.rex.r << 3) =
      reinterpret_cast<greg_t>(address);
  registers[REG_RIP] += code.Length(end);
  return true;
}

// Between registers: 89 reads the one of ModRM's middle, 8B writes it.
bool StepMove(const ScalarCode& code, greg_t* registers) {
  const uint8_t* const modrm = code.opcode + 1;
  if (code.rex.w == 0 || !IsRegister(modrm)) return false;
  greg_t& middle = RegisterOf(registers, code.Operation(modrm) | code.rex.r << 3);
  greg_t& other = RegisterOf(registers, code.RegisterOperand(modrm));
  *code.opcode == 0x89 ? other = middle : middle = other;
  registers[REG_RIP] += code.Length(modrm + 1);
  return true;
}

struct Flags {
  bool carry, parity, zero, sign, overflow;
};

Flags Add(greg_t constant, greg_t* to) {
  Flags flags;
  asm("addq %[constant], %[to]"
      : [to] "+r"(*to), "=@ccc"(flags.carry), "=@ccp"(flags.parity), "=@ccz"(flags.zero),
        "=@ccs"(flags.sign), "=@cco"(flags.overflow)
      : [constant] "r"(constant));
  return flags;
}

Flags Subtract(greg_t constant, greg_t* from) {
  Flags flags;
  asm("subq %[constant], %[from]"
      : [from] "+r"(*from), "=@ccc"(flags.carry), "=@ccp"(flags.parity), "=@ccz"(flags.zero),
        "=@ccs"(flags.sign), "=@cco"(flags.overflow)
      : [constant] "r"(constant));
  return flags;
}

void SetFlags(const Flags& flags, greg_t* registers) {
  greg_t& to = registers[REG_EFL];
  to &= ~(kCarry | kParity | kZero | kSign | kOverflow);
  to |= (flags.carry ? kCarry : 0) | (flags.parity ? kParity : 0) | (flags.zero ? kZero : 0) |
        (flags.sign ? kSign : 0) | (flags.overflow ? kOverflow : 0);
}

// 81 has a constant of four bytes, 83 of one; both are sign-extended.
bool StepConstant(const ScalarCode& code, greg_t* registers) {
  constexpr int kAdd = 0, kSubtract = 5;
  const uint8_t* const modrm = code.opcode + 1;
  const int operation = code.Operation(modrm);
  const bool adds = operation == kAdd;
  if (code.rex.w == 0 || !IsRegister(modrm) || (!adds && operation != kSubtract)) return false;
  const bool is_short = *code.opcode == 0x83;
  int32_t constant = static_cast<int8_t>(modrm[1]);
  if (!is_short) std::memcpy(&constant, modrm + 1, sizeof(constant));
  greg_t& value = RegisterOf(registers, code.RegisterOperand(modrm));
  SetFlags(adds ? Add(constant, &value) : Subtract(constant, &value), registers);
  registers[REG_RIP] += code.Length(modrm + (is_short ? 2 : 5));
  return true;
}

void Call(const ScalarCode& code, greg_t target, greg_t* registers) {
  const uint8_t* const next = code.opcode + 2;
  registers[REG_RSP] -= sizeof(next);
  std::memcpy(reinterpret_cast<void*>(registers[REG_RSP]), &next, sizeof(next));
  registers[REG_RIP] = target;
}

// inc and dec, which leave the carry as it is, and call.
bool StepRegister(const ScalarCode& code, greg_t* registers) {
  constexpr int kIncrement = 0, kCall = 2;
  const uint8_t* const modrm = code.opcode + 1;
  const int operation = code.Operation(modrm);
  if (!IsRegister(modrm) || operation > kCall) return false;  // 1 is dec
  greg_t& value = RegisterOf(registers, code.RegisterOperand(modrm));
  if (operation == kCall) {
    Call(code, value, registers);
    return true;
  }
  if (code.rex.w == 0) return false;
  Flags flags = operation == kIncrement ? Add(1, &value) : Subtract(1, &value);
  flags.carry = (registers[REG_EFL] & kCarry) != 0;
  SetFlags(flags, registers);
  registers[REG_RIP] += code.Length(modrm + 1);
  return true;
}

bool StepReturn(greg_t* registers) {
  std::memcpy(&registers[REG_RIP], reinterpret_cast<const void*>(registers[REG_RSP]),
              sizeof(registers[REG_RIP]));
  registers[REG_RSP] += sizeof(registers[REG_RIP]);
  return true;
}

// `distance` follows the opcode, and is counted from where it ends.
template <typename Distance>
bool StepJump(bool jumps, const uint8_t* at, greg_t* registers) {
  Distance distance;
  std::memcpy(&distance, at, sizeof(distance));
  registers[REG_RIP] = reinterpret_cast<greg_t>(at + sizeof(distance)) + (jumps ? distance : 0);
  return true;
}

bool IsNotZero(const greg_t* registers) { return (registers[REG_EFL] & kZero) == 0; }

// Prefetches do nothing, and far jumps.
bool StepTwoBytes(const ScalarCode& code, greg_t* registers) {
  const uint8_t* const operand = code.opcode + 2;
  if (code.opcode[1] == 0x85) return StepJump<int32_t>(IsNotZero(registers), operand, registers);
  MemoryOperand ignored;
  if (code.opcode[1] != 0x18) return false;
  const uint8_t* const end = DecodeMemoryOperand(operand, {code.rex.x, code.rex.b}, &ignored);
  if (end == nullptr) return false;
  registers[REG_RIP] += code.Length(end);
  return true;
}

}  // namespace

bool StepScalar(greg_t* registers) {
  const ScalarCode code(registers);
  switch (*code.opcode) {
    case 0x8D:
      return StepLea(code, registers);
    case 0x81:
    case 0x83:
      return StepConstant(code, registers);
    case 0xFF:
      return StepRegister(code, registers);
    case 0xC3:
      return StepReturn(registers);
    case 0x75:
      return StepJump<int8_t>(IsNotZero(registers), code.opcode + 1, registers);
    case 0xEB:
      return StepJump<int8_t>(true, code.opcode + 1, registers);
    case 0xE9:
      return StepJump<int32_t>(true, code.opcode + 1, registers);
    case 0x89:
    case 0x8B:
      return StepMove(code, registers);
    case 0x0F:
      return StepTwoBytes(code, registers);
    default:
      return false;
  }
}

}  // namespace tilewire::testing
