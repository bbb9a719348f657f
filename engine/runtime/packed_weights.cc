// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/huge_pages.h"
#include "engine/base/status_macros.h"
#include "engine/memory/dims.h"
#include "engine/network/network.h"
#include "engine/runtime/page_release.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::runtime {
namespace {

// Whether `target` are the dims [g', O/g', I/g', k...] of weights of groups that are computed
// several at a time, with fewer groups than the weights [O, I/g, k...] have.
bool MergesGroups(const network::Weights& weights, const Dims& target) {
  return target.size() == weights.dims.size() + 1 && target.size() > 2 &&
         target[2] > weights.dims[1];
}

// The `elements` of the weights in row-major order of the dims of `target`, with zeros between
// groups.
//   kResourceExhausted  memory
absl::StatusOr<AlignedBuffer> WithZerosBetweenGroups(const network::Weights& weights,
                                                     absl::Span<const float> elements,
                                                     const Dims& target) {
  const int64_t count = static_cast<int64_t>(elements.size()), rows = weights.dims[0];
  const int64_t row = count / rows;  // of one output
  const int64_t merged = target[2] / weights.dims[1], outputs = target[1] / merged;
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer,
                        AlignedBuffer::Allocate(count * merged * sizeof(float)));
  float* to = reinterpret_cast<float*>(buffer.data());
  std::fill_n(to, count * merged, 0.0f);
  for (int64_t o = 0; o < rows; ++o) {
    const int64_t place = o / outputs % merged;  // of its group among the merged ones
    std::copy_n(elements.data() + o * row, row, to + (o * merged + place) * row);
  }
  return buffer;
}

// The layout of the weights in the file, with the dims of the primitive. Where they are stored as
// [I, O], neighbouring output channels are one element apart, and everything else is O apart.
absl::StatusOr<MemoryDesc> StoredDesc(const network::Weights& weights, int64_t count,
                                      const Dims& dims, DataType type) {
  ABSL_ASSIGN_OR_RETURN(MemoryDesc desc, PlainDesc(dims, type, /*channels_last=*/false));
  if (desc.ElementCount() != count) {
    return InvalidArgument("weights '", weights.key, "' have ", count, " elements, ",
                           DimsToString(dims), " needs ", desc.ElementCount());
  }
  if (!weights.transposed) return desc;
  Dims strides = desc.strides();
  strides[0] = 1;
  int64_t step = dims[0];
  for (int d = desc.rank() - 1; d > 0; --d) {
    strides[d] = step;
    step *= dims[d];
  }
  return MemoryDesc::CreateStrided(dims, type, strides);
}

// data * scale of the output channel, in the same order: an output channel is a row, or a column if
// transposed.
absl::StatusOr<AlignedBuffer> Scaled(const network::Weights& weights, absl::Span<const float> data,
                                     const threading::Team& team) {
  const int64_t outputs = static_cast<int64_t>(weights.scale.size());
  const int64_t count = static_cast<int64_t>(data.size());
  if (outputs == 0 || count % outputs != 0) {
    return InvalidArgument("weights '", weights.key, "': ", outputs, " scales for ", count,
                           " elements");
  }
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(count * sizeof(float)));
  float* scaled = reinterpret_cast<float*>(buffer.data());
  const int64_t inputs = count / outputs;
  if (weights.transposed) {
    team.ParallelFor(inputs, [&](int64_t i) {
      for (int64_t o = 0; o < outputs; ++o)
        scaled[i * outputs + o] = data[i * outputs + o] * weights.scale[o];
    });
  } else {
    team.ParallelFor(outputs, [&](int64_t o) {
      for (int64_t i = 0; i < inputs; ++i)
        scaled[o * inputs + i] = data[o * inputs + i] * weights.scale[o];
    });
  }
  return buffer;
}

absl::Span<const float> FloatsIn(const AlignedBuffer& buffer) {
  return {reinterpret_cast<const float*>(buffer.data()), buffer.size() / sizeof(float)};
}

}  // namespace

absl::StatusOr<PackedWeights::Bytes> PackedWeights::Pack(const network::Weights& weights,
                                                         const MemoryDesc& target,
                                                         const threading::Team& team) {
  if (weights.own) return MakePacked(weights, target, team);
  std::string key = absl::StrCat("weights:", weights.key, ":");
  target.AppendKey(&key);
  return packed_.GetOrMake(key, [&] { return MakePacked(weights, target, team); });
}

absl::StatusOr<PackedWeights::Bytes> PackedWeights::Reordered(const void* elements,
                                                              const MemoryDesc& stored,
                                                              const MemoryDesc& target,
                                                              const threading::Team& team) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  ABSL_ASSIGN_OR_RETURN(const PrimitiveCache::Found found,
                        cache_->GetOrCreate(ReorderDesc{stored, target}, attributes, options_));
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer packed, AlignedBuffer::Allocate(target.SizeBytes()));
  PreferHugePages(packed.data(), packed.size());
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer scratchpad,
                        AlignedBuffer::Allocate(found.primitive->info().scratchpad_bytes));
  ExecuteArgs args;
  args.Set(kArgSrc, elements).Set(kArgDst, packed.data()).Set(kArgScratchpad, scratchpad.data());
  ABSL_RETURN_IF_ERROR(found.primitive->Execute(args, team));
  return std::make_shared<const AlignedBuffer>(std::move(packed));
}

absl::StatusOr<PackedWeights::Bytes> PackedWeights::PackIntegers(const network::Weights& weights,
                                                                 const MemoryDesc& target,
                                                                 const threading::Team& team) {
  ABSL_ASSIGN_OR_RETURN(const network::HeldBytes held, weights.s8->LoadBytes());
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc stored,
                        StoredDesc(weights, static_cast<int64_t>(held.values.size()), target.dims(),
                                   target.data_type()));
  if (!SameMemory(stored, target) || target.HasCompensation() || target.IsBounded())
    return Reordered(held.values.data(), stored, target, team);
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer copy, AlignedBuffer::Allocate(held.values.size()));
  std::memcpy(copy.data(), held.values.data(), held.values.size());
  return std::make_shared<const AlignedBuffer>(std::move(copy));
}

absl::StatusOr<PackedWeights::Bytes> PackedWeights::MakePacked(const network::Weights& weights,
                                                               const MemoryDesc& target,
                                                               const threading::Team& team) {
  if (target.data_type() == DataType::kS8) return PackIntegers(weights, target, team);
  ABSL_ASSIGN_OR_RETURN(const network::HeldFloats held, network::LoadElements(weights));
  absl::Span<const float> elements = held.values;
  AlignedBuffer converted;
  const bool scales = !weights.scale.empty(), merges = MergesGroups(weights, target.dims());
  if (scales) {
    ABSL_ASSIGN_OR_RETURN(converted, Scaled(weights, elements, team));
    elements = FloatsIn(converted);
  }
  if (merges) {
    ABSL_ASSIGN_OR_RETURN(converted, WithZerosBetweenGroups(weights, elements, target.dims()));
    elements = FloatsIn(converted);
  }
  ABSL_ASSIGN_OR_RETURN(
      const MemoryDesc stored,
      StoredDesc(weights, static_cast<int64_t>(elements.size()), target.dims(), DataType::kF32));
  if ((scales || merges) && SameMemory(stored, target) && !target.HasCompensation()) {
    return std::make_shared<const AlignedBuffer>(std::move(converted));
  }
  return Reordered(elements.data(), stored, target, team);
}

absl::StatusOr<PackedWeights::Bytes> PackedWeights::SumOutputs(const network::Weights& weights) {
  if (weights.own) return MakeSums(weights);
  return packed_.GetOrMake(absl::StrCat("sums:", weights.key), [&] { return MakeSums(weights); });
}

absl::StatusOr<PackedWeights::Bytes> PackedWeights::MakeSums(const network::Weights& weights) {
  ABSL_ASSIGN_OR_RETURN(const network::HeldFloats held, network::LoadElements(weights));
  const int64_t outputs = weights.dims[0];
  const int64_t count = static_cast<int64_t>(held.values.size());
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(outputs * sizeof(float)));
  auto* sums = reinterpret_cast<float*>(buffer.data());
  std::fill_n(sums, outputs, 0.0f);
  const int64_t inputs = count / outputs;
  for (int64_t i = 0; i < count; ++i)
    sums[weights.transposed ? i % outputs : i / inputs] += held.values[i];
  return std::make_shared<const AlignedBuffer>(std::move(buffer));
}

absl::StatusOr<int> PackedWeights::LargestByte(const network::Weights& weights) {
  const auto make = [&] { return MakeLargest(weights); };
  ABSL_ASSIGN_OR_RETURN(
      const Bytes held,
      weights.own ? make() : packed_.GetOrMake(absl::StrCat("largest:", weights.key), make));
  return *reinterpret_cast<const int*>(held->data());
}

absl::StatusOr<PackedWeights::Bytes> PackedWeights::MakeLargest(const network::Weights& weights) {
  ABSL_ASSIGN_OR_RETURN(const network::HeldBytes held, weights.s8->LoadBytes());
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(sizeof(int)));
  int least = 0, most = 0;
  for (int8_t element : held.values) {
    least = std::min<int>(least, element);
    most = std::max<int>(most, element);
  }
  *reinterpret_cast<int*>(buffer.data()) = std::max(-least, most);
  return std::make_shared<const AlignedBuffer>(std::move(buffer));
}

absl::StatusOr<PackedWeights::Bytes> PackedWeights::PackBias(const std::vector<float>& bias,
                                                             const MemoryDesc& target, bool own) {
  const size_t bytes = bias.size() * sizeof(float);
  if (target.rank() != 1 || target.dim(0) != static_cast<int64_t>(bias.size())) {
    return InvalidArgument("a bias of ", bias.size(), " elements does not fit ", target.ToString());
  }
  const auto make = [&]() -> absl::StatusOr<Bytes> {
    const size_t size = target.SizeBytes();
    ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(std::max(size, bytes)));
    std::memset(buffer.data(), 0, buffer.size());
    std::memcpy(buffer.data(), bias.data(), bytes);
    return std::make_shared<const AlignedBuffer>(std::move(buffer));
  };
  if (own) return make();
  // Operations with equal biases share one.
  std::string key = "bias:";
  target.AppendKey(&key);
  key.append(reinterpret_cast<const char*>(bias.data()), bytes);
  return packed_.GetOrMake(key, make);
}

void PackedWeights::Release(absl::FunctionRef<void()> between) const {
  for (const std::string& key : packed_.Keys()) {
    if (const Bytes packed = packed_.Peek(key)) ReleasePages(*packed, between);
  }
}

}  // namespace tilewire::runtime
