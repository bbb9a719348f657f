// SPDX-License-Identifier: Apache-2.0
//
// Grows a plan step by step: where each value lives and in which layouts, which buffers may be
// overwritten, and the reorders between layouts. Knows no operation: lowering.cc does.
//
// A value has a home (the layout in which it was made) and possibly copies in other layouts. A
// value of the network's inputs has no home until somebody wants it: then it is streamed from the
// request straight into that layout. Thread-compatible.
#ifndef ENGINE_LOWERING_PLAN_BUILDER_H_
#define ENGINE_LOWERING_PLAN_BUILDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/cache/primitive_cache.h"
#include "engine/graph/network.h"
#include "engine/lowering/band_fusion.h"
#include "engine/runtime/packed_weights.h"
#include "engine/runtime/plan.h"
#include "engine/threading/arena.h"

namespace tilewire::runtime {

// What lowering works with; everything must outlive the call.
struct LoweringContext {
  PrimitiveCache* cache = nullptr;
  PackedWeights* weights = nullptr;
  CreateOptions options;
  ConvolutionAlgorithm convolution_algorithm = ConvolutionAlgorithm::kAuto;
  threading::Team team = threading::Team::Serial();  // packs weights
  int64_t max_arena_bytes = int64_t{8} << 30;
  BandLimits bands;
};

class PlanBuilder {
 public:
  // A value in one layout.
  struct Place {
    int buffer = -1;
    MemoryDesc desc;
  };

  PlanBuilder(const graph::Network& network, const LoweringContext& context);

  const LoweringContext& context() const { return context_; }
  const graph::Value& value(graph::ValueId id) const { return network_.values[id]; }
  absl::StatusOr<MemoryDesc> AnyDesc(graph::ValueId id) const;

  // From the cache, in user scratchpad mode.
  absl::StatusOr<std::shared_ptr<const Primitive>> Create(const OpDesc& desc,
                                                          Attributes attributes = {});

  // An input of the network that nobody has asked for yet.
  bool IsUnplaced(graph::ValueId id) const { return places_[id].empty(); }
  // Where the value was made; an unplaced input is placed row-major.
  absl::StatusOr<Place> Home(graph::ValueId id);
  // The same, or, where that is a part of a larger buffer, a copy without gaps in the same layout.
  absl::StatusOr<Place> DenseHome(graph::ValueId id, absl::string_view node);
  // The value in the layout of `desc`: where it lies so already, else by a reorder on behalf of
  // `node`.
  absl::StatusOr<Place> InLayout(graph::ValueId id, const MemoryDesc& desc, absl::string_view node);

  // One use of the value by the operation being lowered has been looked at.
  void Consume(graph::ValueId id) { --remaining_uses_[id]; }
  // Operations that still have to look at the value.
  int RemainingUses(graph::ValueId id) const { return remaining_uses_[id]; }
  // Both are, or are parts of, one buffer: a step must not read the one while it writes the other.
  bool MayOverlap(int a, int b) const { return plan_->WholeOf(a) == plan_->WholeOf(b); }
  // Nobody will read what the buffer holds.
  bool IsDead(int buffer) const;
  Place NewPlace(const MemoryDesc& desc);
  // A place that holds these bytes in every run and that is never overwritten.
  Place ConstantPlace(const MemoryDesc& desc, std::shared_ptr<const AlignedBuffer> bytes);
  // Whether the whole buffer could lie in another one: it is a run's own, in one piece that is
  // neither the request's nor an answer's nor a part already.
  bool MayBePart(const Place& place) const;
  // `part` lies in `whole`, a later buffer that no step has used yet, from byte `offset` on.
  void MakePart(int part, int whole, int64_t offset);
  // Gives the tensor, which may be a part, these strides (of more than it needs), and everything
  // else in its buffer with it: the steps that make and read it are created again.
  //   kUnimplemented  a step that cannot be, or a value that lies there in another way: nothing
  //                   has changed
  absl::Status Respace(const Place& place, const Dims& strides);
  // The value now lives there; its home if it has none yet.
  void Bind(graph::ValueId id, const Place& place);

  Binding Constant(int arg, std::shared_ptr<const AlignedBuffer> bytes);
  void Emit(absl::string_view node, std::shared_ptr<const Primitive> primitive, Bindings bindings,
            absl::string_view remark = "", const PostOps& fused = {});

  // The network's input `id`, read by the latest step that runs `primitive` and by no other, may
  // also come in the layout that `variant` reads.
  void AddInputVariant(graph::ValueId id, const Primitive& primitive,
                       std::shared_ptr<const Primitive> variant);

  // Adds outputs and their reorders, fuses chains and plans memory. Call once, last.
  absl::StatusOr<std::shared_ptr<const Plan>> Finish();

 private:
  absl::Status AddOutput(graph::ValueId id);
  PlanInput& InputOf(graph::ValueId id);
  void NoteOverwrittenInputs();
  // For each buffer, whether it is `whole` or lies in it.
  std::vector<bool> BuffersIn(int whole) const;
  absl::Status RespaceSteps(const std::vector<bool>& inside, const MemoryDesc& from,
                            const Dims& strides);
  absl::StatusOr<std::shared_ptr<const Primitive>> RespacedPrimitive(
      const Primitive& primitive, const Bindings& bindings, const std::vector<bool>& inside,
      const MemoryDesc& from, const Dims& strides);

  const graph::Network& network_;
  const LoweringContext& context_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
  PrimitiveRequests requests_;
  std::vector<absl::InlinedVector<Place, 2>> places_;  // of each value, the home first
  std::vector<int> remaining_uses_;  // of each value; an output counts as one for ever
  // Of each buffer that is no part: whose bytes it and its parts hold.
  std::vector<std::vector<graph::ValueId>> buffer_values_;
};

}  // namespace tilewire::runtime

#endif  // ENGINE_LOWERING_PLAN_BUILDER_H_
