// SPDX-License-Identifier: Apache-2.0
//
// Objects of past calls, kept for the next ones: a few, so that a peak of calls leaves little, and
// found without a lock. Thread-safe.
#ifndef SERVICE_RPC_IDLE_SLOTS_H_
#define SERVICE_RPC_IDLE_SLOTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace tilewire::service {

template <typename T>
class IdleSlots {
 public:
#ifdef __SANITIZE_ADDRESS__
  static constexpr size_t kSlots = 0;  // so that uses after the end are seen
#else
  static constexpr size_t kSlots = 32;
#endif

  IdleSlots() = default;
  IdleSlots(const IdleSlots&) = delete;
  ~IdleSlots() {
    while (Take() != nullptr) {
    }
  }

  // Null if none is kept.
  std::unique_ptr<T> Take() {
    for (std::atomic<T*>& slot : slots_) {
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (T* object = slot.exchange(nullptr, std::memory_order_acquire)) {
        return std::unique_ptr<T>(object);
      }
    }
    return nullptr;
  }

  // Destroys the object if kSlots are kept already.
  void Keep(std::unique_ptr<T> object) {
    for (std::atomic<T*>& slot : slots_) {
      T* empty = nullptr;
      if (slot.load(std::memory_order_relaxed) == nullptr &&
          slot.compare_exchange_strong(empty, object.get(), std::memory_order_release)) {
        object.release();
        return;
      }
    }
  }

 private:
  std::array<std::atomic<T*>, kSlots> slots_ = {};
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_IDLE_SLOTS_H_
