// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/parameter_store.h"

#include <cstring>
#include <utility>

#include "engine/base/huge_pages.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/reorder/reorder.h"
#include "engine/runtime/tensor_layout.h"
#include "engine/threading/arena.h"

namespace tilewire::runtime {

absl::StatusOr<int> ParameterStore::Add(const std::string& name, const Dims& dims,
                                        network::ConstantPtr initial) {
  const auto [found, is_new] = by_name_.try_emplace(name, count());
  if (is_new) {
    entries_.push_back({.name = name, .dims = dims, .initial = std::move(initial)});
  } else if (entries_[found->second].dims != dims) {
    return Internal("parameter '", name, "' is ", DimsToString(entries_[found->second].dims),
                    ", a network wants ", DimsToString(dims));
  }
  return found->second;
}

int ParameterStore::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNone : found->second;
}

absl::Status ParameterStore::Settle(int index, const MemoryDesc& home) {
  Entry& entry = entries_[index];
  const bool fits = entry.home.IsZero() && home.dims() == entry.dims && !home.IsOpaque() &&
                    !home.IsAny() && home.data_type() == DataType::kF32 && !home.Overlaps();
  if (!fits) return Internal("parameter '", entry.name, "' in ", home.ToString());
  ABSL_ASSIGN_OR_RETURN(const network::HeldFloats held, network::LoadNumbers(*entry.initial));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain,
                        PlainDesc(entry.dims, DataType::kF32, /*channels_last=*/false));
  if (static_cast<int64_t>(held.values.size()) != plain.ElementCount())
    return Internal("parameter '", entry.name, "' has ", held.values.size(), " elements");
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer value, AlignedBuffer::Allocate(home.SizeBytes()));
  PreferHugePages(value.data(), value.size());
  if (value.size() > 0) std::memset(value.data(), 0, value.size());
  ABSL_RETURN_IF_ERROR(Convert(plain, held.values.data(), home, value.data()));
  entry.value = std::move(value);
  entry.home = home;
  return absl::OkStatus();
}

absl::Status ParameterStore::KeepGradient(int index) {
  Entry& entry = entries_[index];
  if (entry.gradient.size() > 0 || entry.home.SizeBytes() == 0) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(entry.gradient, AlignedBuffer::Allocate(entry.home.SizeBytes()));
  PreferHugePages(entry.gradient.data(), entry.gradient.size());
  std::memset(entry.gradient.data(), 0, entry.gradient.size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ParameterStore::Elements(int index) const {
  const Entry& entry = entries_[index];
  if (entry.home.IsZero()) {
    ABSL_ASSIGN_OR_RETURN(const network::HeldFloats held, network::LoadNumbers(*entry.initial));
    return std::vector<float>(held.values.begin(), held.values.end());
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain,
                        PlainDesc(entry.dims, DataType::kF32, /*channels_last=*/false));
  std::vector<float> elements(plain.ElementCount());
  ABSL_RETURN_IF_ERROR(Convert(entry.home, entry.value.data(), plain, elements.data()));
  return elements;
}

absl::Status ParameterStore::Convert(const MemoryDesc& from, const void* src, const MemoryDesc& to,
                                     void* dst) const {
  if (from.SizeBytes() == 0) return absl::OkStatus();
  if (SameMemory(from, to)) {
    std::memcpy(dst, src, from.SizeBytes());
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(const auto reorder, CreateReorder({from, to}, Attributes(), options_));
  ExecuteArgs args;
  args.Set(kArgSrc, src).Set(kArgDst, dst);
  return reorder->Execute(args, threading::Team::Serial());
}

int64_t ParameterStore::HeldBytes() const {
  int64_t bytes = 0;
  for (const Entry& entry : entries_)
    bytes += static_cast<int64_t>(entry.value.size() + entry.gradient.size());
  return bytes;
}

}  // namespace tilewire::runtime
