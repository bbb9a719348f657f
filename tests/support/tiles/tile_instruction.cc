// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiles/tile_instruction.h"

namespace tilewire::testing {
namespace {

// 49: configuration, and tilezero.
std::optional<TileOperation> ConfigurationOf(int pp, uint8_t modrm) {
  const bool in_memory = modrm >> 6 != 3, extends_opcode = (modrm >> 3 & 7) == 0;
  if (in_memory && extends_opcode && pp == VexPrefix::kNoPrefix) return TileOperation::kLoadConfig;
  if (in_memory && extends_opcode && pp == VexPrefix::k66) return TileOperation::kStoreConfig;
  if (modrm == 0xC0 && pp == VexPrefix::kNoPrefix) return TileOperation::kRelease;
  if (!in_memory && (modrm & 7) == 0 && pp == VexPrefix::kF2) return TileOperation::kZero;
  return std::nullopt;
}

std::optional<TileOperation> OperationOf(uint8_t opcode, const VexPrefix& prefix, uint8_t modrm) {
  const bool in_memory = modrm >> 6 != 3;
  if (opcode == 0x49) return ConfigurationOf(prefix.pp, modrm);
  if (opcode == 0x4B && in_memory && prefix.pp != VexPrefix::kNoPrefix) {
    return prefix.pp == VexPrefix::kF3 ? TileOperation::kStore : TileOperation::kLoad;
  }
  if (opcode == 0x5E && !in_memory) return TileOperation::kMultiplyBytes;
  if (opcode == 0x5C && !in_memory && prefix.pp == VexPrefix::kF3)
    return TileOperation::kMultiplyBf16;
  return std::nullopt;
}

bool IsProduct(TileOperation operation) {
  return operation == TileOperation::kMultiplyBytes || operation == TileOperation::kMultiplyBf16;
}

bool NeedsSib(TileOperation operation) {
  return operation == TileOperation::kLoad || operation == TileOperation::kStore;
}

}  // namespace

std::optional<TileInstruction> DecodeTileInstruction(const uint8_t* code) {
  const VexPrefix prefix(code);
  if (!prefix.is_vex || prefix.map != VexPrefix::kMap0F38 || prefix.w != 0 || prefix.l != 0 ||
      prefix.r != 0) {
    return std::nullopt;
  }
  const uint8_t* modrm = code + 4;
  const std::optional<TileOperation> operation = OperationOf(code[3], prefix, *modrm);
  if (!operation || prefix.v > (IsProduct(*operation) ? 7 : 0)) return std::nullopt;
  TileInstruction instruction;
  instruction.operation = *operation;
  instruction.tile = *modrm >> 3 & 7;
  instruction.a = *modrm & 7;
  instruction.b = prefix.v;
  instruction.a_is_signed = prefix.pp == VexPrefix::kF2 || prefix.pp == VexPrefix::kF3;
  instruction.b_is_signed = prefix.pp == VexPrefix::kF2 || prefix.pp == VexPrefix::k66;
  const uint8_t* end = modrm + 1;
  if (*modrm >> 6 != 3) {
    if (NeedsSib(*operation) && (*modrm & 7) != 4) return std::nullopt;
    end = DecodeMemoryOperand(modrm, {prefix.x, prefix.b}, &instruction);
  } else if (prefix.b != 0 || prefix.x != 0) {
    return std::nullopt;
  }
  instruction.length = static_cast<int>(end - code);
  return instruction;
}

}  // namespace tilewire::testing
