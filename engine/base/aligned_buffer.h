// SPDX-License-Identifier: Apache-2.0
//
// Owns uninitialised bytes on a 64-byte boundary. Move-only; thread-compatible.
#ifndef ENGINE_BASE_ALIGNED_BUFFER_H_
#define ENGINE_BASE_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace tilewire {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  // kResourceExhausted  the system does not have `size` bytes
  static absl::StatusOr<AlignedBuffer> Allocate(size_t size) {
    AlignedBuffer buffer;
    if (size == 0) return buffer;
    void* bytes = nullptr;
    if (size > SIZE_MAX / 2 || posix_memalign(&bytes, kAlignment, size) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", size, " bytes"));
    }
    buffer.bytes_.reset(static_cast<std::byte*>(bytes));
    buffer.size_ = size;
    return buffer;
  }

  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  size_t size() const { return size_; }

  // Gives the bytes away; the receiver frees them with std::free().
  std::byte* Release() {
    size_ = 0;
    return bytes_.release();
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  size_t size_ = 0;
};

}  // namespace tilewire

#endif  // ENGINE_BASE_ALIGNED_BUFFER_H_
