// SPDX-License-Identifier: Apache-2.0
//
// The weights of one model in the layouts that its primitives want. Scales and reorders them once
// per layout, when they are first asked for; all plans of the model share the result. Thread-safe.
#ifndef ENGINE_RUNTIME_PACKED_WEIGHTS_H_
#define ENGINE_RUNTIME_PACKED_WEIGHTS_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/cache/primitive_cache.h"
#include "engine/network/network.h"
#include "engine/threading/arena.h"
#include "engine/threading/single_flight_cache.h"

namespace tilewire::runtime {

class PackedWeights {
 public:
  using Bytes = std::shared_ptr<const AlignedBuffer>;

  // `cache` must outlive the object; `options` are those of the model's primitives.
  PackedWeights(PrimitiveCache* cache, const CreateOptions& options)
      : cache_(cache), options_(options), packed_({.bytes_of = [](const AlignedBuffer& one) {
          return static_cast<int64_t>(one.size());
        }}) {}

  // The weights in the layout of `target`: for f32 with their scales, for s8 without them, because
  // the primitive applies those. The dims of `target` may split those of `weights`: output channels
  // into groups, input features into channels and space.
  //   kInvalidArgument     sizes that do not fit each other; weights beyond the bound of `target`
  //   kFailedPrecondition  the model's file, which still holds the weights, was written to
  //   kResourceExhausted   memory
  absl::StatusOr<Bytes> Pack(const network::Weights& weights, const MemoryDesc& target,
                             const threading::Team& team);

  // The sum of the weights per output, without their scales, as floats.
  absl::StatusOr<Bytes> SumOutputs(const network::Weights& weights);

  // The largest magnitude of weights that are bytes, without their zero point.
  //   kFailedPrecondition, kResourceExhausted  as above
  absl::StatusOr<int> LargestByte(const network::Weights& weights);

  // A bias in the layout of `target`, which has one dimension and may be padded with zeros. One
  // that is a specialization's `own` is not kept for others.
  absl::StatusOr<Bytes> PackBias(const std::vector<float>& bias, const MemoryDesc& target,
                                 bool own = false);

  int64_t HeldBytes() const { return packed_.bytes(); }

  // Gives all of them back to the system (page_release.h). Nothing may read them any more.
  void Release(absl::FunctionRef<void()> between) const;

 private:
  absl::StatusOr<Bytes> MakePacked(const network::Weights& weights, const MemoryDesc& target,
                                   const threading::Team& team);
  absl::StatusOr<Bytes> MakeSums(const network::Weights& weights);
  absl::StatusOr<Bytes> MakeLargest(const network::Weights& weights);

  // s8 weights go from their bytes to the packed ones in one pass.
  absl::StatusOr<Bytes> PackIntegers(const network::Weights& weights, const MemoryDesc& target,
                                     const threading::Team& team);
  absl::StatusOr<Bytes> Reordered(const void* elements, const MemoryDesc& stored,
                                  const MemoryDesc& target, const threading::Team& team);

  PrimitiveCache* const cache_;
  const CreateOptions options_;
  threading::SingleFlightCache<AlignedBuffer> packed_;
};

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_PACKED_WEIGHTS_H_
