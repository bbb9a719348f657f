// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose weights are computed: these are packed for the primitive in every run.
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_lowering.h"
#include "engine/runtime/layouts.h"

namespace tilewire::runtime {

using graph::Operation;
using Place = PlanBuilder::Place;

// The value, row-major under `dims`, in the layout that the primitive wants its weights in.
absl::StatusOr<Place> Lowering::PackInRun(ValueId weights, const Dims& dims,
                                          const MemoryDesc& packed, const Operation& op) {
  const graph::Value& value = builder_.value(weights);
  ABSL_ASSIGN_OR_RETURN(const Place given, RowMajorOfRank(weights, value.dims.size(), op));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain,
                        PlainDesc(dims, value.type, /*channels_last=*/false));
  if (SameMemory(plain, packed)) return Place{given.buffer, packed};
  ABSL_ASSIGN_OR_RETURN(auto reorder, builder_.Create(ReorderDesc{plain, packed}));
  const Place place = builder_.NewPlace(packed);
  builder_.Emit(op.name, std::move(reorder), {{kArgSrc, given.buffer}, {kArgDst, place.buffer}},
                "packs weights that are computed, in every run");
  return place;
}

// Not by Winograd, whose weights take longer to transform than one run gains.
absl::Status Lowering::Lower(const Operation& op, const graph::ComputedConvolution& convolution) {
  ConvolutionDesc desc{.algorithm = ConvolutionAlgorithm::kDirect,
                       .strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = convolution.padding_left,
                       .padding_right = convolution.padding_right};
  Dims dims = builder_.value(op.srcs[1]).dims;
  if (convolution.groups > 1) {
    dims[0] /= convolution.groups;
    dims.insert(dims.begin(), convolution.groups);
  }
  ABSL_ASSIGN_OR_RETURN(desc.src, builder_.AnyDesc(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(desc.dst, builder_.AnyDesc(op.dst));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(dims, DataType::kF32));
  const bool has_bias = op.srcs.size() > 2;
  if (has_bias) {
    ABSL_ASSIGN_OR_RETURN(desc.bias, PlainDesc(builder_.value(op.srcs[2]).dims, DataType::kF32,
                                               /*channels_last=*/false));
  }
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc));
  ABSL_ASSIGN_OR_RETURN(const Place src,
                        builder_.InLayout(op.srcs[0], primitive->Desc(kArgSrc), op.name));
  ABSL_ASSIGN_OR_RETURN(const Place weights,
                        PackInRun(op.srcs[1], dims, primitive->Desc(kArgWeights), op));
  Bindings bindings = {{kArgSrc, src.buffer}, {kArgWeights, weights.buffer}};
  if (has_bias) {
    ABSL_ASSIGN_OR_RETURN(const Place bias,
                          builder_.InLayout(op.srcs[2], primitive->Desc(kArgBias), op.name));
    bindings.push_back({kArgBias, bias.buffer});
  }
  for (ValueId id : op.srcs) builder_.Consume(id);
  const Place dst = builder_.NewPlace(primitive->Desc(kArgDst));
  bindings.push_back({kArgDst, dst.buffer});
  builder_.Emit(op.name, std::move(primitive), std::move(bindings));
  builder_.Bind(op.dst, dst);
  return absl::OkStatus();
}

}  // namespace tilewire::runtime
