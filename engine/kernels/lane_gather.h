// SPDX-License-Identifier: Apache-2.0
//
// Generates functions that put vectors together from lanes of other vectors, pixel after pixel:
//
//   dst[p][lane] = source[pattern[lane].source][p][pattern[lane].lane], 0 where there is none
//
// for every pixel p of a run, at which each block of lanes follows the one of the pixel before.
// Such a function moves channels of blocked layouts (nChw16c) that stay in no block: concat,
// shuffle.
//   AVX-512  4- and 2-byte elements: vpermd, vpermw under a mask for each source
//   AVX2     8 lanes of 4 bytes: vpermps and a blend for each source
//   both     blocks of 8 or 16 bytes: vpshufb, whose absent lanes are zeros, and an OR
#ifndef ENGINE_KERNELS_LANE_GATHER_H_
#define ENGINE_KERNELS_LANE_GATHER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"

namespace tilewire {

struct LaneSource {
  int source = -1;  // number of the source block; -1: the lane is zero
  int lane = 0;     // of that block
  auto operator<=>(const LaneSource&) const = default;
};
// One entry a lane. Sources are numbered from 0 without gaps, in the order of their first lane.
using LanePattern = std::vector<LaneSource>;

struct LaneGatherArgs {
  const std::byte* const* sources;  // first pixel of each source block
  std::byte* const* dsts;           // and of the block that is put together
  int64_t bytes;                    // of the run: pixels * lanes * element size; > 0
};
using LaneGatherFunction = void (*)(const LaneGatherArgs*);

struct LaneGatherConfig {
  cpu::Isa isa = cpu::Isa::kAvx2;  // kAvx2 or kAvx512
  int lanes = 16;
  int element_bytes = 4;
};

// kUnimplemented  no instruction moves such lanes; the message names them
absl::Status RequireLaneGather(const LaneGatherConfig& config);

// Immutable: the functions of all patterns in one piece of code.
struct LaneGather {
  std::unique_ptr<const jit::Generator> code;
  std::vector<LaneGatherFunction> functions;  // [pattern]

  // Of a generator that tells where its functions begin.
  template <typename G>
  static LaneGather Of(std::unique_ptr<const G> code) {
    LaneGather gather;
    for (size_t entry : code->entries()) {
      gather.functions.push_back(
          reinterpret_cast<LaneGatherFunction>(const_cast<uint8_t*>(code->getCode() + entry)));
    }
    gather.code = std::move(code);
    return gather;
  }
};
//   kUnimplemented, kResourceExhausted  see RequireLaneGather(), jit::Compile()
absl::StatusOr<LaneGather> CompileLaneGather(absl::string_view name, const LaneGatherConfig& config,
                                             absl::Span<const LanePattern> patterns);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_LANE_GATHER_H_
