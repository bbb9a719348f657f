// SPDX-License-Identifier: Apache-2.0
//
// A chain of primitives that one step of a plan runs band by band. The step does not compute one
// whole tensor after the other. Instead, a band (a few rows of the last result, and the rows that
// they need of each tensor before it) goes through all primitives of the chain, so that the
// intermediate tensors stay in cache. A thread that computes neighbouring bands keeps the rows that
// both need: the second band computes the others only. lowering/band_plan.h chooses the bands and
// explains why the bits do not change.
#ifndef ENGINE_RUNTIME_ROW_BANDS_H_
#define ENGINE_RUNTIME_ROW_BANDS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/range.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

// The arguments of the weights and bias of the chain's primitive `i`. Beside these there are the
// kArgSrc of the first and the kArgDst of the last primitive.
constexpr int WeightsOfChain(int i) { return kArgMultipleSrc + 2 * i; }
constexpr int BiasOfChain(int i) { return kArgMultipleSrc + 2 * i + 1; }

// Immutable: any number of threads may Run() it at once on distinct buffers.
class RowBands {
 public:
  // One primitive of the chain, for some rows.
  struct Part {
    std::shared_ptr<const Primitive> primitive;  // without a scratchpad; null: there are no rows
    // Where it reads and writes, in bytes from the start of the image; for an intermediate tensor,
    // from the start of the worker's scratchpad.
    int64_t src_offset = 0, dst_offset = 0;
  };
  // Rows of an intermediate tensor that are kept: their places in the scratchpad, in bytes. Each of
  // `blocks` of channels has `bytes` of them, `step` bytes after those of the one before.
  struct KeptRows {
    int64_t from = 0, to = 0, bytes = 0, step = 0, blocks = 1;
  };
  struct Band {
    std::vector<Part> alone;     // all of its rows, in the order of the chain
    std::vector<Part> next;      // the rows that the previous band did not leave
    std::vector<KeptRows> kept;  // which are moved first
  };

  // As explanations of plans name it.
  static constexpr absl::string_view kName = "runtime/row_bands";

  // `args` are those of the whole chain, for all images; `bands` cover one image. Each worker takes
  // `worker_bytes` of the scratchpad, a multiple of 64.
  RowBands(std::vector<ArgDesc> args, std::vector<Band> bands, int64_t worker_bytes);

  const std::vector<ArgDesc>& args() const { return args_; }
  const MemoryDesc& Desc(int arg) const;             // of an argument that is there
  std::vector<const Primitive*> Primitives() const;  // of all bands, each once
  int64_t code_bytes() const;                        // of these primitives
  int64_t scratchpad_bytes() const { return workers_ * worker_bytes_; }

  // All arguments must be there, and kArgScratchpad with scratchpad_bytes() on a 64-byte boundary.
  void Run(const ExecuteArgs& args, const threading::Team& team) const;

 private:
  int64_t RunsOfImage(int threads) const;
  void RunBands(const ExecuteArgs& args, int64_t image, const Range& range,
                std::byte* scratch) const;
  void RunParts(const ExecuteArgs& args, absl::Span<const Part> parts, int64_t image,
                std::byte* scratch) const;

  const std::vector<ArgDesc> args_;
  const std::vector<Band> bands_;
  const int64_t worker_bytes_;
  const int64_t images_, src_image_, dst_image_;  // the last two in bytes
  const int64_t workers_;                         // at most
};

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_ROW_BANDS_H_
