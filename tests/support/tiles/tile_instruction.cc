// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiles/tile_instruction.h"

#include <cstring>

namespace tilewire::testing {
namespace {

// The fields of C4, then ~R ~X ~B and the map, then W ~vvvv L pp.
struct Prefix {
  explicit Prefix(const uint8_t* code)
      : is_vex(code[0] == 0xC4),
        r(~code[1] >> 7 & 1),
        x(~code[1] >> 6 & 1),
        b(~code[1] >> 5 & 1),
        map(code[1] & 31),
        w(code[2] >> 7),
        v(~code[2] >> 3 & 15),
        l(code[2] >> 2 & 1),
        pp(code[2] & 3) {}
  bool is_vex;
  int r, x, b, map, w, v, l, pp;
};

constexpr int kNoPrefix = 0, k66 = 1, kF3 = 2, kF2 = 3;  // pp

// Reads ModRM, SIB and displacement of an operand in memory. Loads and stores of tiles need the
// form with SIB. Returns where the instruction ends, or null.
const uint8_t* DecodeAddress(const uint8_t* modrm, const Prefix& prefix, bool needs_sib,
                             TileInstruction* to) {
  const int mod = modrm[0] >> 6, rm = modrm[0] & 7;
  const bool has_sib = rm == 4;
  if (mod == 3 || (needs_sib && !has_sib)) return nullptr;
  const uint8_t* next = modrm + 1;
  int base = rm;
  if (has_sib) {
    const int index = (*next >> 3 & 7) | prefix.x << 3;
    to->scale = *next >> 6;
    to->index = index == 4 ? TileInstruction::kNone : index;
    base = *next++ & 7;
  }
  int displacement_bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  to->base = base | prefix.b << 3;
  if (mod == 0 && base == 5) {
    to->base = has_sib ? TileInstruction::kNone : TileInstruction::kRip;
    displacement_bytes = 4;
  }
  if (displacement_bytes == 1) to->displacement = static_cast<int8_t>(*next);
  if (displacement_bytes == 4) std::memcpy(&to->displacement, next, 4);
  return next + displacement_bytes;
}

// 49: configuration, and tilezero.
std::optional<TileOperation> ConfigurationOf(int pp, uint8_t modrm) {
  const bool in_memory = modrm >> 6 != 3, extends_opcode = (modrm >> 3 & 7) == 0;
  if (in_memory && extends_opcode && pp == kNoPrefix) return TileOperation::kLoadConfig;
  if (in_memory && extends_opcode && pp == k66) return TileOperation::kStoreConfig;
  if (modrm == 0xC0 && pp == kNoPrefix) return TileOperation::kRelease;
  if (!in_memory && (modrm & 7) == 0 && pp == kF2) return TileOperation::kZero;
  return std::nullopt;
}

std::optional<TileOperation> OperationOf(uint8_t opcode, const Prefix& prefix, uint8_t modrm) {
  const bool in_memory = modrm >> 6 != 3;
  if (opcode == 0x49) return ConfigurationOf(prefix.pp, modrm);
  if (opcode == 0x4B && in_memory && prefix.pp != kNoPrefix) {
    return prefix.pp == kF3 ? TileOperation::kStore : TileOperation::kLoad;
  }
  if (opcode == 0x5E && !in_memory) return TileOperation::kMultiplyBytes;
  if (opcode == 0x5C && !in_memory && prefix.pp == kF3) return TileOperation::kMultiplyBf16;
  return std::nullopt;
}

bool IsProduct(TileOperation operation) {
  return operation == TileOperation::kMultiplyBytes || operation == TileOperation::kMultiplyBf16;
}

}  // namespace

std::optional<TileInstruction> DecodeTileInstruction(const uint8_t* code) {
  constexpr int kMap0F38 = 2;
  if (code[0] != 0xC4) return std::nullopt;
  const Prefix prefix(code);
  if (prefix.map != kMap0F38 || prefix.w != 0 || prefix.l != 0 || prefix.r != 0)
    return std::nullopt;
  const uint8_t* modrm = code + 4;
  const std::optional<TileOperation> operation = OperationOf(code[3], prefix, *modrm);
  if (!operation || prefix.v > (IsProduct(*operation) ? 7 : 0)) return std::nullopt;
  TileInstruction instruction;
  instruction.operation = *operation;
  instruction.tile = *modrm >> 3 & 7;
  instruction.a = *modrm & 7;
  instruction.b = prefix.v;
  instruction.a_is_signed = prefix.pp == kF2 || prefix.pp == kF3;
  instruction.b_is_signed = prefix.pp == kF2 || prefix.pp == k66;
  const uint8_t* end = modrm + 1;
  if (*modrm >> 6 != 3) {
    const bool needs_sib =
        *operation == TileOperation::kLoad || *operation == TileOperation::kStore;
    end = DecodeAddress(modrm, prefix, needs_sib, &instruction);
    if (end == nullptr) return std::nullopt;
  } else if (prefix.b != 0 || prefix.x != 0) {
    return std::nullopt;
  }
  instruction.length = static_cast<int>(end - code);
  return instruction;
}

}  // namespace tilewire::testing
