// SPDX-License-Identifier: Apache-2.0
//
// Memory that is given back to the system piece by piece, by who may wait in between. To unmap
// hundreds of megabytes at once takes tenths of a second, in which the system's lock on the address
// space holds up all other threads that map memory or touch new pages of it.
#ifndef ENGINE_RUNTIME_PAGE_RELEASE_H_
#define ENGINE_RUNTIME_PAGE_RELEASE_H_

#include "absl/functional/function_ref.h"
#include "engine/base/aligned_buffer.h"

namespace tilewire::runtime {

constexpr size_t kReleasedPiece = size_t{4} << 20;

// Gives the whole pages of a buffer back, kReleasedPiece at a time, and calls `between` after each
// piece. The buffer stays valid, its bytes do not. Small buffers are left as they are. A refusal of
// the system is ignored: the memory is then given back when the buffer is freed.
void ReleasePages(const AlignedBuffer& buffer, absl::FunctionRef<void()> between);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_PAGE_RELEASE_H_
