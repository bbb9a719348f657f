// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a model in training, and the gradients that a run leaves: memory that outlives
// runs, and that all plans of the model share.
//
// A parameter lies in one layout, its home: the one that the first plan to read it chooses, as for
// inputs. Its elements are converted once, from `initial`, and back when they are asked for. Its
// gradient has the same layout, whose padding is 0.
//
// Thread-compatible: plans are built, and run, one at a time.
#ifndef ENGINE_RUNTIME_PARAMETER_STORE_H_
#define ENGINE_RUNTIME_PARAMETER_STORE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/memory/dims.h"
#include "engine/memory/memory_desc.h"
#include "engine/network/constant.h"
#include "engine/primitives/implementation.h"

namespace tilewire::runtime {

class ParameterStore {
 public:
  static constexpr int kNone = -1;

  // `options` are those of the plans' primitives.
  explicit ParameterStore(const CreateOptions& options) : options_(options) {}

  // The index of a parameter, which is new if none has the name. `dims` have a dimension at least.
  //   kInternal  it has other dims
  absl::StatusOr<int> Add(const std::string& name, const Dims& dims, network::ConstantPtr initial);
  int Find(absl::string_view name) const;  // kNone: there is none
  int count() const { return static_cast<int>(entries_.size()); }
  const std::string& name(int index) const { return entries_[index].name; }

  // Its home; the zero descriptor as long as no plan reads it.
  const MemoryDesc& Home(int index) const { return entries_[index].home; }
  // Makes `home` its home, and its elements the initial ones.
  //   kInternal  it has one, or `home` has other dims, another type, or cannot be written
  //   and the errors of network::LoadNumbers(), kResourceExhausted
  absl::Status Settle(int index, const MemoryDesc& home);
  // Takes memory for its gradient. It has a home.
  //   kResourceExhausted
  absl::Status KeepGradient(int index);

  // All elements of the home, its padding too; a parameter without a home, and one whose gradient
  // is not kept, have none.
  absl::Span<float> value(int index) { return ElementsOf(entries_[index].value); }
  absl::Span<const float> gradient(int index) { return ElementsOf(entries_[index].gradient); }

  // Has `elements`, as many bytes as the value, in its place, and gives what was there.
  void ExchangeValue(int index, AlignedBuffer* elements) {
    std::swap(entries_[index].value, *elements);
  }

  // The elements as they are now, row-major.
  //   the errors of network::LoadNumbers()
  absl::StatusOr<std::vector<float>> Elements(int index) const;

  // Numbers of buffers for plans (PlanBuffer::persistent), and where they are.
  static constexpr int ValueBuffer(int index) { return 2 * index; }
  static constexpr int GradientBuffer(int index) { return 2 * index + 1; }
  std::byte* Place(int buffer) {
    Entry& entry = entries_[buffer / 2];
    return buffer % 2 == 0 ? entry.value.data() : entry.gradient.data();
  }

  int64_t HeldBytes() const;

 private:
  struct Entry {
    std::string name;
    Dims dims;
    network::ConstantPtr initial;
    MemoryDesc home;
    AlignedBuffer value, gradient;
  };

  static absl::Span<float> ElementsOf(AlignedBuffer& buffer) {
    return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
  }
  absl::Status Convert(const MemoryDesc& from, const void* src, const MemoryDesc& to,
                       void* dst) const;

  const CreateOptions options_;
  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, int> by_name_;
};

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_PARAMETER_STORE_H_
