// SPDX-License-Identifier: Apache-2.0
//
// The work of lowering, one overload of Lower() per operation: those with weights and fused steps
// in lower_weighted.cc, those that only move elements in lower_movement.cc, functions of elements
// and reductions in lower_elementwise.cc, normalizations and products in lower_rows.cc,
// convolutions with computed weights in
// lower_computed_weights.cc, concatenations in lower_concat.cc, the ways to integers and back in
// lower_quantization.cc, the others in lowering.cc. Private to these files. Thread-compatible.
#ifndef ENGINE_LOWERING_OPERATION_LOWERING_H_
#define ENGINE_LOWERING_OPERATION_LOWERING_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/network.h"
#include "engine/lowering/plan_builder.h"
#include "engine/runtime/plan.h"

namespace tilewire::runtime {

// How a chain of fused steps is carried out: the first `taken` as post-ops, the others as steps of
// their own. And the bias before them.
struct Fusion {
  Attributes attributes;  // a max pooling among them is of a convolution that has one
  graph::ValueId addend = graph::kNoValue;  // of the sum among the post-ops
  size_t taken = 0;
  std::vector<float> bias;  // empty for none
};

class Lowering {
 public:
  using Place = PlanBuilder::Place;
  using Operation = graph::Operation;
  using FusedStep = graph::FusedStep;
  using ValueId = graph::ValueId;

  Lowering(const graph::Network& network, const LoweringContext& context)
      : network_(network), builder_(network, context) {}

  absl::StatusOr<std::shared_ptr<const Plan>> Build();

 private:
  absl::Status Lower(const Operation& op, const graph::Convolution& convolution);
  absl::Status Lower(const Operation& op, const graph::ComputedConvolution& convolution);
  absl::Status Lower(const Operation& op, const graph::InnerProduct& product);
  absl::Status Lower(const Operation& op, const graph::Pooling& pooling);
  absl::Status Lower(const Operation& op, const graph::MaxWindow& window);
  absl::Status Lower(const Operation& op, const graph::Activation& activation);
  absl::Status Lower(const Operation& op, const graph::Softmax& softmax);
  absl::Status Lower(const Operation& op, const graph::Sum& sum);
  absl::Status Lower(const Operation& op, const graph::Concat& concat);
  absl::Status Lower(const Operation& op, const graph::Shuffle& shuffle);
  absl::Status Lower(const Operation& op, const graph::Reshape& reshape);
  absl::Status Lower(const Operation& op, const graph::Transpose& transpose);
  absl::Status Lower(const Operation& op, const graph::Select& select);
  absl::Status Lower(const Operation& op, const graph::Literal& literal);
  absl::Status Lower(const Operation& op, const graph::Elementwise& elementwise);
  absl::Status Lower(const Operation& op, const graph::Reduce& reduce);
  absl::Status Lower(const Operation& op, const graph::Interpolate& interpolate);
  absl::Status Lower(const Operation& op, const graph::Lrn& lrn);
  absl::Status Lower(const Operation& op, const graph::LayerNormalization& norm);
  absl::Status Lower(const Operation& op, const graph::Matmul& matmul);
  absl::Status Lower(const Operation& op, const graph::TopK& top);
  absl::Status Lower(const Operation& op, const graph::GatherChannels& gather);
  absl::Status Lower(const Operation& op, const graph::Gather& gather);
  absl::Status Lower(const Operation& op, const graph::Quantize& quantize);
  absl::Status Lower(const Operation& op, const graph::Dequantize& dequantize);
  absl::Status Lower(const Operation& op, const graph::IntegerSum& sum);

  absl::StatusOr<Place> LowerWeighted(const Operation& op,
                                      std::shared_ptr<const Primitive> primitive,
                                      const graph::Weights& weights,
                                      const std::vector<FusedStep>& fused, const Fusion& fusion);
  absl::StatusOr<std::shared_ptr<const Primitive>> CreateConvolution(
      const graph::Convolution& convolution, const ConvolutionDesc& desc, Fusion* fusion);
  absl::StatusOr<Place> LowerFusedPooling(const Operation& op, const graph::FusedPooling& pooling,
                                          const Place& src);
  absl::StatusOr<std::shared_ptr<const Primitive>> AsItLies(
      ValueId src, ConvolutionDesc desc, const Attributes& attributes,
      std::shared_ptr<const Primitive> primitive);
  absl::Status OfferChannelsLast(ValueId input, ConvolutionDesc desc, const Attributes& attributes,
                                 const Primitive& primitive);
  absl::StatusOr<std::shared_ptr<const Primitive>> CreateInnerProduct(const Operation& op,
                                                                      InnerProductDesc desc,
                                                                      const Attributes& attributes);
  absl::StatusOr<Place> DestinationHolding(const Operation& op, ValueId addend,
                                           const MemoryDesc& desc, int src);
  absl::Status LowerFusedRest(const Operation& op, const std::vector<FusedStep>& fused, size_t from,
                              const Place& place);
  bool IsReorderedAnyway(ValueId id) const;
  absl::StatusOr<Place> PlaceOfRank(ValueId id, size_t rank, const Operation& op);
  absl::StatusOr<Place> RowMajorOfRank(ValueId id, size_t rank, const Operation& op);
  absl::StatusOr<Place> PlaceLike(ValueId id, const MemoryDesc& layout, const Operation& op);
  absl::StatusOr<bool> TryEltwise(const Operation& op, const graph::Elementwise& elementwise);
  absl::StatusOr<bool> TryBinary(const Operation& op, const graph::Elementwise& elementwise);
  absl::StatusOr<MemoryDesc> LayoutOfSources(const Operation& op);
  static Bindings ManySources(const std::vector<Place>& sources, int dst);
  absl::StatusOr<MemoryDesc> ConcatResult(const Operation& op, const MemoryDesc& layout, int axis);
  absl::StatusOr<Place> ConcatSource(const Operation& op, ValueId src, const MemoryDesc& layout);
  absl::StatusOr<std::optional<Place>> TryParts(const Operation& op,
                                                const std::vector<Place>& sources,
                                                const MemoryDesc& dst_desc, int axis);
  absl::StatusOr<std::vector<Place>> SourcesInLayout(const Operation& op, const MemoryDesc& layout);
  absl::StatusOr<Place> PackInRun(ValueId weights, const Dims& dims, const MemoryDesc& packed,
                                  const Operation& op);
  absl::Status EmitUnary(const Operation& op, std::shared_ptr<const Primitive> primitive,
                         const Place& src, bool may_run_in_place, Bindings more = {});

  const graph::Network& network_;
  PlanBuilder builder_;
};

}  // namespace tilewire::runtime

#endif  // ENGINE_LOWERING_OPERATION_LOWERING_H_
