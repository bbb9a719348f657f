// SPDX-License-Identifier: Apache-2.0
//
// The machine code of the instructions on matrix tiles (AMX), decoded. Pure; usable in a signal
// handler.
// Source: Intel SDM volume 2; all have a VEX prefix of three bytes.
#ifndef TESTS_SUPPORT_TILES_TILE_INSTRUCTION_H_
#define TESTS_SUPPORT_TILES_TILE_INSTRUCTION_H_

#include <cstdint>
#include <optional>

#include "tests/support/vex/vex.h"

namespace tilewire::testing {

enum class TileOperation : uint8_t {
  kLoadConfig,
  kStoreConfig,
  kRelease,
  kZero,
  kLoad,  // tileloadd and tileloaddt1, which differ in what caches do
  kStore,
  kMultiplyBytes,
  kMultiplyBf16,
};

// The index of loads and stores, shifted by its scale, is their stride.
struct TileInstruction : MemoryOperand {
  TileOperation operation = TileOperation::kRelease;
  int tile = 0, a = 0, b = 0;  // of a product: tile += a * b
  bool a_is_signed = false, b_is_signed = false;
  int length = 0;  // bytes of the instruction
};

// Empty where `code` is not an instruction on tiles, or not encoded as it has to be.
std::optional<TileInstruction> DecodeTileInstruction(const uint8_t* code);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_TILES_TILE_INSTRUCTION_H_
