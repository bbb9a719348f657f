// SPDX-License-Identifier: Apache-2.0
//
// A copy of a convolution's weights, [O,I,...] or [G,O/G,I/G,...], for the operation that computes
// its gradient of src: output and input channels change places within each group, and, where that
// operation is a convolution, taps come in reverse order along each dimension. f32, any blocked
// layouts. Where output channels are neighbours in the weights and input channels in the copy,
// squares of them are transposed in registers (exchange_generator.h).
//
// Immutable once created; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGED_WEIGHTS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGED_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/range.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/convolution/backward/exchange_generator.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// The dims of the copy; `grouped`: weights have a dimension of groups.
Dims ExchangedDims(Dims weights, bool grouped);

class ExchangedWeights {
 public:
  // `to` has ExchangedDims(); code uses the vectors of `unit`, or shorter ones.
  //   kResourceExhausted  no memory for code
  static absl::StatusOr<ExchangedWeights> Create(absl::string_view name, const VectorUnit& unit,
                                                 const MemoryDesc& from, const MemoryDesc& to,
                                                 bool grouped, bool flips);

  // From and to the starts of buffers. The padded tail of the copy is zero.
  void Run(const float* from, float* to, const threading::Team& team) const;

  int64_t code_bytes() const;

 private:
  // Elements from the beginning of a tensor, by an index.
  struct Offsets {
    std::vector<int64_t> from, to;
  };

  ExchangedWeights(const MemoryDesc& from, const MemoryDesc& to, bool grouped, bool flips);
  absl::Status CompileSquares(absl::string_view name, const VectorUnit& unit);

  void CopyPiece(const float* from, float* to, const Range& outputs, const Range& inputs) const;
  void CopyChannels(const float* from, float* to, const Range& outputs, const Range& inputs) const;

  static Offsets Along(const MemoryDesc& from, int from_dim, const MemoryDesc& to, int to_dim);
  static Offsets OfTaps(const MemoryDesc& from, const MemoryDesc& to, int first, bool flips);

  Offsets groups_, outputs_, inputs_, taps_;
  int64_t from_offset_, to_offset_, to_elements_;
  bool has_padding_;
  std::unique_ptr<const ExchangeGenerator> transposition_;  // null where squares are not in order
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGED_WEIGHTS_H_
