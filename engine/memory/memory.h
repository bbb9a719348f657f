// SPDX-License-Identifier: Apache-2.0
//
// A tensor's bytes together with their descriptor. Taking bytes zeroes their padded tail, owned
// or borrowed, so that a Memory always satisfies what primitives expect. Move-only;
// thread-compatible. Source: tests/engine/rows.txt A08.
#ifndef ENGINE_MEMORY_MEMORY_H_
#define ENGINE_MEMORY_MEMORY_H_

#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/status_macros.h"
#include "engine/memory/memory_desc.h"
#include "engine/memory/zero_padding.h"

namespace tilewire {

class Memory {
 public:
  // Owns desc.SizeBytes() bytes on a 64-byte boundary; only the padded tail is initialised.
  // kResourceExhausted.
  static absl::StatusOr<Memory> Allocate(MemoryDesc desc) {
    ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(desc.SizeBytes()));
    Memory memory(std::move(desc), buffer.data());
    memory.owned_ = std::move(buffer);
    return memory;
  }

  // Borrows `data`, of at least desc.SizeBytes() bytes, or nothing: nullptr until SetData().
  Memory(MemoryDesc desc, void* data) : desc_(std::move(desc)) { SetData(data); }

  // Borrows other bytes from now on; what was owned is freed.
  void SetData(void* data) {
    owned_ = AlignedBuffer();
    data_ = data;
    if (data_ != nullptr) ZeroPadding(desc_, data_);
  }

  const MemoryDesc& desc() const { return desc_; }
  void* data() { return data_; }
  const void* data() const { return data_; }
  template <typename T>
  T* as() {
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }

 private:
  MemoryDesc desc_;
  void* data_ = nullptr;
  AlignedBuffer owned_;
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_MEMORY_H_
