// SPDX-License-Identifier: Apache-2.0
//
// A copy of a convolution's weights, [O,I,...] or [G,O/G,I/G,...], for the operation that computes
// its gradient of src: output and input channels change places within each group, and, where that
// operation is a convolution, taps come in reverse order along each dimension. f32, any blocked
// layouts. Immutable; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGED_WEIGHTS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGED_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "engine/memory/memory_desc.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// The dims of the copy; `grouped`: weights have a dimension of groups.
Dims ExchangedDims(Dims weights, bool grouped);

class ExchangedWeights {
 public:
  // `to` has ExchangedDims().
  ExchangedWeights(const MemoryDesc& from, const MemoryDesc& to, bool grouped, bool flips);

  // From and to the starts of buffers. The padded tail of the copy is zero.
  void Run(const float* from, float* to, const threading::Team& team) const;

 private:
  // Elements from the beginning of a tensor, by an index.
  struct Offsets {
    std::vector<int64_t> from, to;
  };
  void Copy(const float* from, float* to, int64_t first_input) const;
  static Offsets Along(const MemoryDesc& from, int from_dim, const MemoryDesc& to, int to_dim);
  static Offsets OfTaps(const MemoryDesc& from, const MemoryDesc& to, int first, bool flips);

  Offsets groups_, outputs_, inputs_, taps_;
  int64_t from_offset_, to_offset_, to_elements_;
  bool has_padding_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_EXCHANGED_WEIGHTS_H_
