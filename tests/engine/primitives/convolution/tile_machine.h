// SPDX-License-Identifier: Apache-2.0
//
// The machine of a CPU with matrix tiles, whichever CPU runs the test. Thread-safe.
#ifndef TESTS_ENGINE_PRIMITIVES_CONVOLUTION_TILE_MACHINE_H_
#define TESTS_ENGINE_PRIMITIVES_CONVOLUTION_TILE_MACHINE_H_

#include <array>
#include <cstdint>

#include "engine/cpu/machine.h"

namespace tilewire::testing {

// The machine of a Sapphire Rapids, by its answers to CPUID.
inline cpu::Machine MachineWithTiles() {
  return cpu::MachineOf([](uint32_t leaf, uint32_t) -> std::array<uint32_t, 4> {
    if (leaf == 0) return {32, 0x756e6547, 0x6c65746e, 0x49656e69};
    if (leaf == 1) return {0x000806f8, 0, 0, 0};
    return leaf == 7 ? std::array<uint32_t, 4>{0, 0, 0, 1u << 24} : std::array<uint32_t, 4>{};
  });
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_CONVOLUTION_TILE_MACHINE_H_
