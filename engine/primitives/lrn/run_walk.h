// SPDX-License-Identifier: Apache-2.0
//
// How a tensor falls into runs of memory, in each of which the neighbours of every element stand at
// the same distances from it:
//
//   across channels   the pixels of a channel (nchw); the inner channels of a pixel (nhwc), whose
//                     outer ones are runs of one element
//   within a channel  the inner pixels of a row, with all channels that lie between (nchw, nhwc,
//                     nChw16c, nChw8c), and the outer pixels one by one
//
// Immutable; thread-safe.
#ifndef ENGINE_PRIMITIVES_LRN_RUN_WALK_H_
#define ENGINE_PRIMITIVES_LRN_RUN_WALK_H_

#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/primitives/lrn/lrn.h"
#include "engine/threading/arena.h"

namespace tilewire::lrn {

class RunWalk {
 public:
  // Distances from an element to its neighbours, itself among them, in bytes.
  using Taps = absl::InlinedVector<int64_t, 32>;
  // `count` elements from `offset` on, which is counted in elements from the first one.
  using Visit = absl::FunctionRef<void(int64_t offset, const Taps& taps, int64_t count)>;

  //   kUnimplemented  src does not fall into runs, or its windows are large
  static absl::Status Require(const LrnDesc& desc);
  explicit RunWalk(const LrnDesc& desc);  // of src, which Require() accepts

  // Every element is in one of the runs. Calls `visit` from several threads at once.
  void ForEach(const threading::Team& team, Visit visit) const {
    ForEach(team, absl::MakeConstSpan(&visit, 1));
  }
  // The same in several passes, which follow each other through parts of src that caches may hold:
  // all neighbours of an element have been visited by the passes before.
  void ForEach(const threading::Team& team, absl::Span<const Visit> passes) const;

 private:
  struct Layout {
    std::array<int64_t, 3> size = {1, 1, 1}, stride = {0, 0, 0};  // of depth, height, width
    int64_t cell = 1;      // elements of a pixel that follow each other, all of them channels
    int64_t channels = 1;  // cells of a pixel
    int64_t channel_stride = 0;
  };

  static Layout LayoutOf(const MemoryDesc& md);
  static int64_t PixelStep(const Layout& layout);
  void Across(const threading::Team& team, absl::Span<const Visit> passes) const;
  void AcrossPlanes(int64_t offset, int64_t pixels, Visit visit) const;
  void AcrossCell(int64_t offset, Visit visit) const;
  void Within(const threading::Team& team, absl::Span<const Visit> passes) const;
  void WithinRow(int64_t offset, int64_t depth, int64_t height, Visit visit) const;

  const LrnDesc desc_;
  const Layout layout_;
  const int64_t pixels_;
};

}  // namespace tilewire::lrn

#endif  // ENGINE_PRIMITIVES_LRN_RUN_WALK_H_
