// SPDX-License-Identifier: Apache-2.0
//
// Generates functions that assemble vectors from lanes of other vectors, pixel after pixel:
//
//   dst[p][lane] = source[pattern[lane].source][p][pattern[lane].lane], or 0 where there is none
//
// for every pixel p of a run. The blocks of lanes of a run's pixels follow each other in memory.
// Concat and shuffle of blocked layouts (nChw16c) move channels that change their block with such
// functions. By instruction set:
//
//   with masks     4- and 2-byte elements: vpermd and vpermw under a mask for each source
//   without masks  8 lanes of 4 bytes: vpermps and a blend for each source
//   both           blocks of 8 or 16 bytes: vpshufb, which sets absent lanes to zero, and an OR
#ifndef ENGINE_KERNELS_MOVES_LANE_GATHER_H_
#define ENGINE_KERNELS_MOVES_LANE_GATHER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/jit/generator.h"
#include "engine/jit/vector_unit.h"

namespace tilewire {

struct LaneSource {
  int source = -1;  // number of the source block; -1: the lane is zero
  int lane = 0;     // of that block
  auto operator<=>(const LaneSource&) const = default;
};
// One entry per lane. Sources are numbered from 0 without gaps, in the order of their first lane.
using LanePattern = std::vector<LaneSource>;

struct LaneGatherArgs {
  const std::byte* const* sources;  // the first pixel of each source block
  std::byte* const* dsts;           // and of the blocks that are assembled
  int64_t bytes;                    // of the run: pixels * lanes * element size; > 0
};
using LaneGatherFunction = void (*)(const LaneGatherArgs*);

struct LaneGatherConfig {
  jit::VectorUnit unit;
  int lanes = 16;  // of a block, not of the unit
  int element_bytes = 4;
};

// kUnimplemented  no instruction moves such lanes; the message names them
absl::Status RequireLaneGather(const LaneGatherConfig& config);

// The functions of all patterns, in one piece of code. Immutable.
struct LaneGather {
  std::unique_ptr<const jit::Generator> code;
  std::vector<LaneGatherFunction> functions;  // [pattern]

  // From a generator that tells where its functions begin.
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

#endif  // ENGINE_KERNELS_MOVES_LANE_GATHER_H_
