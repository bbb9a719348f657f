// SPDX-License-Identifier: Apache-2.0
//
// Builds a plan while the operations of a network are lowered one after the other. The builder
// knows where each value is, in which layout, and which memory may be overwritten. It knows no
// operation.
//
// Places. A value of the network has a home: the buffer and the layout in which the step that
// computes it writes it. An operation that needs another layout calls InLayout(): the first such
// call adds a reorder step, later ones find the copy that it made. An input of the network has no
// home until an operation reads it. The bytes of a request are then streamed straight into the
// layout that this first reader wants, so that no reorder is needed. A parameter has its home in
// the store (runtime/parameter_store.h), in the layout that the first plan's first reader wants;
// later plans find it there. Its gradient is left in the store, in the same layout.
//
// Buffers. A buffer is a number with a size and a lifetime, from the step that writes it to the
// last step that reads it. It has no address until Finish(), when buffers whose lifetimes do not
// overlap come to share memory. A buffer may be a part of another one: a concatenation makes its
// sources parts of its result, so that each is written where it belongs and nothing is copied.
// Where that takes the strides of the larger tensor, Restride() gives them to the smaller one.
//
// Uses. The builder counts how many operations have yet to read each value. An operation calls
// Consume() for each value that it reads; a value without remaining uses is dead, and the operation
// may write its result over it. Outputs of the network are never dead.
//
// To lower an operation: find its sources (Home, DenseHome, InLayout), Create() the primitive,
// Consume() the sources, choose the destination (a dead source, or NewPlace), Emit() the step and
// Bind() the result. After the last operation, Finish() adds the outputs, joins steps whose
// intermediate tensors exceed the cache (band_fusion.h) and assigns memory (memory_plan.h).
//
// Thread-compatible.
#ifndef ENGINE_LOWERING_PLAN_PLAN_BUILDER_H_
#define ENGINE_LOWERING_PLAN_PLAN_BUILDER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/cache/primitive_cache.h"
#include "engine/lowering/bands/band_fusion.h"
#include "engine/lowering/plan/plan_draft.h"
#include "engine/network/network.h"
#include "engine/runtime/packed_weights.h"
#include "engine/runtime/parameter_store.h"
#include "engine/runtime/plan.h"
#include "engine/threading/arena.h"

namespace tilewire::lowering {

// Shared by all that lowers a network; everything must outlive the call.
struct LoweringContext {
  PrimitiveCache* cache = nullptr;
  runtime::PackedWeights* weights = nullptr;
  runtime::ParameterStore* parameters = nullptr;  // of networks that have some
  CreateOptions options;
  ConvolutionAlgorithm convolution_algorithm = ConvolutionAlgorithm::kAuto;
  Precision precision = Precision::kExact;           // of convolutions and products of matrices
  std::map<std::string, Precision> node_precisions;  // of some, in its place, by operation name
  // CreateOptions::only of some convolutions and products with known weights, by operation name.
  std::map<std::string, std::string> node_rows;
  bool tries_rows = false;  // a row that does not take its layer leaves it to the estimates
  threading::Team team = threading::Team::Serial();  // packs weights
  int64_t max_arena_bytes = int64_t{8} << 30;
  // Whether elements that requests bring decide sizes: the plan then counts the bytes of constants
  // that it does not share, and what selections list is bounded.
  bool requests_decide_sizes = false;
  std::function<absl::Status()> between_operations;  // not OK: ends the lowering with it
  BandLimits bands = BandLimits::For(cpu::ThisMachine());

  Precision PrecisionOf(const std::string& operation) const {
    const auto found = node_precisions.find(operation);
    return found == node_precisions.end() ? precision : found->second;
  }
  // Empty: that of the estimates.
  absl::string_view RowOf(const std::string& operation) const {
    const auto found = node_rows.find(operation);
    return found == node_rows.end() ? absl::string_view() : found->second;
  }
};

// One entry for each value of a network.
struct ValueFacts {
  std::vector<int> uses;      // how many operations read it; an output counts as one more
  std::vector<bool> is_bf16;  // steps hold it as bf16, whatever type the network gives it
};

class PlanBuilder {
 public:
  PlanBuilder(const network::Network& network, ValueFacts facts, const LoweringContext& context);

  const LoweringContext& context() const { return context_; }
  const network::Value& value(ValueId id) const { return network_.values[id]; }

  // The type in which steps hold the value: its own, or bf16.
  DataType StoredType(ValueId id) const { return is_bf16_[id] ? DataType::kBf16 : value(id).type; }

  // The value in row-major order without gaps.
  absl::StatusOr<MemoryDesc> RowMajorDesc(ValueId id) const;

  // From the cache, in user scratchpad mode; of one implementation only, if it is named.
  absl::StatusOr<std::shared_ptr<const Primitive>> Create(const OpDesc& desc,
                                                          Attributes attributes = {},
                                                          absl::string_view only = "");

  // Whether the value is a parameter of the network, which the run's store keeps.
  bool IsParameter(ValueId id) const { return ParameterOf(id) != nullptr; }
  // Whether the value is an input or a parameter of the network that no operation has read yet.
  bool IsUnplaced(ValueId id) const { return draft_.places[id].empty(); }
  // The place in which the value was computed; what is unplaced is placed in row-major order.
  absl::StatusOr<Place> Home(ValueId id);
  // The same, except that a value that is a part of a larger tensor is copied, on behalf of `node`,
  // to a place without gaps.
  absl::StatusOr<Place> DenseHome(ValueId id, absl::string_view node);
  // The value in the layout of `desc`: an existing place, or a copy that a reorder step makes on
  // behalf of `node`.
  absl::StatusOr<Place> InLayout(ValueId id, const MemoryDesc& desc, absl::string_view node);

  // Marks one use of the value as consumed.
  void Consume(ValueId id) { --remaining_uses_[id]; }
  // How many uses of the value are not consumed yet.
  int RemainingUses(ValueId id) const { return remaining_uses_[id]; }
  // Whether two buffers are, or are parts of, the same buffer: a step must not read one of them
  // while it writes the other.
  bool MayOverlap(int a, int b) const { return draft_.plan.WholeOf(a) == draft_.plan.WholeOf(b); }
  // Whether no later operation reads what the buffer holds, and it is neither a constant nor, most
  // likely, memory of the request: an input in a layout that requests have is read where it came.
  bool MayOverwrite(const Place& place) const;
  // Whether a step may add to what the place holds: the values `terms`, each of which is nowhere
  // else and has one use left, and nothing else that is read again.
  bool MayAddTo(const Place& place, absl::Span<const ValueId> terms) const;
  // The value is a term of a Sum, and its place holds the sum of all terms up to it.
  void NoteAdded(ValueId id) { is_added_[id] = true; }
  bool IsAdded(ValueId id) const { return is_added_[id]; }
  // A new buffer for a tensor of `desc`.
  Place NewPlace(const MemoryDesc& desc);
  // A place that holds `bytes` in every run and is never overwritten.
  Place ConstantPlace(const MemoryDesc& desc, std::shared_ptr<const AlignedBuffer> bytes);
  // Notes constants that no other plan shares.
  void CountOwn(const AlignedBuffer& bytes) {
    if (context_.requests_decide_sizes) draft_.plan.own_bytes += static_cast<int64_t>(bytes.size());
  }
  // Whether the whole buffer could become a part of another one: it is written by a step, is
  // neither an output nor constant, and is not a part yet.
  bool MayBePart(const Place& place) const;
  // Puts the buffer `part` into `whole`, a later one that no step uses yet.
  void MakePart(int part, const Place& whole, const PartBegin& begin);
  // Re-strides `place` and everything that shares its buffer (restride.h).
  absl::Status Restride(const Place& place, const Dims& strides);
  // Notes that the value is in this place; its home if it has none yet.
  void Bind(ValueId id, const Place& place);

  // An argument whose bytes never change.
  Binding Constant(int arg, std::shared_ptr<const AlignedBuffer> bytes);
  // Appends a step. `remark` says why the step is there, where that is not obvious; `fused` are the
  // post-ops of the primitive.
  void Emit(absl::string_view node, std::shared_ptr<const Primitive> primitive, Bindings bindings,
            absl::string_view remark = "", const PostOps& fused = {});

  // Requests may also bring the network's input `id` in the layout that `variant` reads instead of
  // `primitive`.
  //   kInternal  no step runs `primitive`, or the input has no or several readers so far
  absl::Status AddInputVariant(ValueId id, const Primitive& primitive,
                               std::shared_ptr<const Primitive> variant);

  // Adds the outputs and the reorders to the layouts that requests may ask for, fuses bands and
  // assigns memory. Call once, last.
  absl::StatusOr<std::shared_ptr<const Plan>> Finish();

 private:
  absl::StatusOr<PrimitiveCache::Found> Find(const OpDesc& desc, const Attributes& attributes,
                                             absl::string_view only);
  const network::Parameter* ParameterOf(ValueId id) const;  // null: it is none
  absl::StatusOr<Place> PlaceInput(ValueId id, const MemoryDesc& desc);
  // In its home, which is that of `desc` if no plan has read the parameter, and it may be one.
  absl::StatusOr<Place> PlaceParameter(const network::Parameter& parameter, const MemoryDesc& desc);
  // Has the run leave the gradients of parameters in the store.
  absl::Status KeepGradients();
  absl::Status KeepGradient(const network::Parameter& parameter);
  bool MayPersist(const Place& place, const MemoryDesc& home) const;
  absl::Status AddOutput(ValueId id);
  // kInternal: the value is not an input of the network.
  absl::StatusOr<PlanInput*> InputOf(ValueId id);
  void NoteOverwrittenInputs();
  void ReserveScratchpad(const Primitive& primitive);

  const network::Network& network_;
  const LoweringContext& context_;
  PlanDraft draft_;
  std::vector<int> remaining_uses_;  // per value; an output counts as one that is never consumed
  const std::vector<bool> is_bf16_;  // per value
  std::vector<bool> is_added_;       // per value
};

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_PLAN_BUILDER_H_
