// SPDX-License-Identifier: Apache-2.0
//
// A reorder whose source arrives in pieces, as the slices of a message do: each piece is written to
// its place in the destination while it is read, so that the bytes are touched once. Pieces may end
// inside an element.
//
// Thread-compatible: one object serves one tensor.
#ifndef ENGINE_PRIMITIVES_REORDER_STREAMING_REORDER_H_
#define ENGINE_PRIMITIVES_REORDER_STREAMING_REORDER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/memory/memory_desc.h"

namespace tilewire {

class StreamingReorder {
 public:
  virtual ~StreamingReorder() = default;

  // src: plain, dense and in the order of memory (nchw, nhwc, any permutation); dst: plain or
  // blocked, same type and shape. The padded tail of dst is zero after the last piece. Copies a run
  // at a time where the layouts allow it.
  //   kInvalidArgument, kUnimplemented
  static absl::StatusOr<std::unique_ptr<StreamingReorder>> Create(const MemoryDesc& src,
                                                                  const MemoryDesc& dst,
                                                                  void* dst_data);

  // kInvalidArgument  more bytes than the source has
  virtual absl::Status Append(absl::string_view piece) = 0;

  // kInvalidArgument  fewer bytes came than the source has
  virtual absl::Status Finish() = 0;
};

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_REORDER_STREAMING_REORDER_H_
