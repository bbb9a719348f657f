// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/primitives.h"

#include "absl/types/span.h"
#include "engine/memory/key_bytes.h"

namespace tilewire {
namespace {

// One overload a primitive: what std::visit dispatches to.
struct Create {
  const Attributes& attributes;
  const CreateOptions& options;

  using Result = absl::StatusOr<std::shared_ptr<const Primitive>>;
  Result operator()(const ReorderDesc& d) const { return CreateReorder(d, attributes, options); }
  Result operator()(const ShuffleDesc& d) const { return CreateShuffle(d, attributes, options); }
  Result operator()(const ConcatDesc& d) const { return CreateConcat(d, attributes, options); }
  Result operator()(const SumDesc& d) const { return CreateSum(d, attributes, options); }
  Result operator()(const ConvolutionDesc& d) const {
    return CreateConvolution(d, attributes, options);
  }
  Result operator()(const EltwiseDesc& d) const { return CreateEltwise(d, attributes, options); }
  Result operator()(const SoftmaxDesc& d) const { return CreateSoftmax(d, attributes, options); }
  Result operator()(const PoolingDesc& d) const { return CreatePooling(d, attributes, options); }
  Result operator()(const InnerProductDesc& d) const {
    return CreateInnerProduct(d, attributes, options);
  }
  Result operator()(const LrnDesc& d) const { return CreateLrn(d, attributes, options); }
  Result operator()(const BinaryDesc& d) const { return CreateBinary(d, attributes, options); }
  Result operator()(const BatchNormalizationDesc& d) const {
    return CreateBatchNormalization(d, attributes, options);
  }
  Result operator()(const ResamplingDesc& d) const {
    return CreateResampling(d, attributes, options);
  }
  Result operator()(const ReductionDesc& d) const {
    return CreateReduction(d, attributes, options);
  }
  Result operator()(const LayerNormalizationDesc& d) const {
    return CreateLayerNormalization(d, attributes, options);
  }
  Result operator()(const MatmulDesc& d) const { return CreateMatmul(d, attributes, options); }
  Result operator()(const DeconvolutionDesc& d) const {
    return CreateDeconvolution(d, attributes, options);
  }
  Result operator()(const SelectDesc& d) const { return CreateSelect(d, attributes, options); }
  Result operator()(const GatherChannelsDesc& d) const {
    return CreateGatherChannels(d, attributes, options);
  }
  Result operator()(const GatherDesc& d) const { return CreateGather(d, attributes, options); }
  Result operator()(const QuantizeDesc& d) const { return CreateQuantize(d, attributes, options); }
  Result operator()(const IntegerSumDesc& d) const {
    return CreateIntegerSum(d, attributes, options);
  }
  Result operator()(const InterpolateDesc& d) const {
    return CreateInterpolate(d, attributes, options);
  }
  Result operator()(const MaxWindowDesc& d) const {
    return CreateMaxWindow(d, attributes, options);
  }
  Result operator()(const TopKDesc& d) const { return CreateTopK(d, attributes, options); }
  Result operator()(const ElementwiseDesc& d) const {
    return CreateElementwise(d, attributes, options);
  }
};

template <typename Desc>
void AppendRows(PrimitiveKind kind, absl::Span<const Implementation<Desc>> table,
                std::vector<ImplementationRow>* rows) {
  for (const Implementation<Desc>& row : table) rows->push_back({row, kind});
}

}  // namespace

PrimitiveKind KindOf(const OpDesc& desc) { return static_cast<PrimitiveKind>(desc.index()); }

absl::StatusOr<std::shared_ptr<const Primitive>> CreatePrimitive(const OpDesc& desc,
                                                                 const Attributes& attributes,
                                                                 const CreateOptions& options) {
  return std::visit(Create{attributes, options}, desc);
}

std::string PrimitiveKey(const OpDesc& desc, const Attributes& attributes,
                         const CreateOptions& options) {
  std::string key(1, static_cast<char>(desc.index()));
  AppendBytes(options.max_isa.bits(), &key);
  std::visit([&key](const auto& d) { AppendKey(d, &key); }, desc);
  attributes.AppendKey(&key);
  AppendBytes(options.reference_only, &key);
  // Last, so that it needs no length: everything before it has one or is of a fixed size.
  key.append(options.only.data(), options.only.size());
  return key;
}

std::vector<ImplementationRow> AllImplementations() {
  std::vector<ImplementationRow> rows;
  AppendRows(PrimitiveKind::kReorder, ReorderImplementations(), &rows);
  AppendRows(PrimitiveKind::kShuffle, ShuffleImplementations(), &rows);
  AppendRows(PrimitiveKind::kConcat, ConcatImplementations(), &rows);
  AppendRows(PrimitiveKind::kSum, SumImplementations(), &rows);
  AppendRows(PrimitiveKind::kConvolution, ConvolutionImplementations(), &rows);
  AppendRows(PrimitiveKind::kEltwise, EltwiseImplementations(), &rows);
  AppendRows(PrimitiveKind::kSoftmax, SoftmaxImplementations(), &rows);
  AppendRows(PrimitiveKind::kPooling, PoolingImplementations(), &rows);
  AppendRows(PrimitiveKind::kInnerProduct, InnerProductImplementations(), &rows);
  AppendRows(PrimitiveKind::kLrn, LrnImplementations(), &rows);
  AppendRows(PrimitiveKind::kBinary, BinaryImplementations(), &rows);
  AppendRows(PrimitiveKind::kBatchNormalization, BatchNormalizationImplementations(), &rows);
  AppendRows(PrimitiveKind::kResampling, ResamplingImplementations(), &rows);
  AppendRows(PrimitiveKind::kReduction, ReductionImplementations(), &rows);
  AppendRows(PrimitiveKind::kLayerNormalization, LayerNormalizationImplementations(), &rows);
  AppendRows(PrimitiveKind::kMatmul, MatmulImplementations(), &rows);
  AppendRows(PrimitiveKind::kDeconvolution, DeconvolutionImplementations(), &rows);
  AppendRows(PrimitiveKind::kSelect, SelectImplementations(), &rows);
  AppendRows(PrimitiveKind::kGatherChannels, GatherChannelsImplementations(), &rows);
  AppendRows(PrimitiveKind::kGather, GatherImplementations(), &rows);
  AppendRows(PrimitiveKind::kQuantize, QuantizeImplementations(), &rows);
  AppendRows(PrimitiveKind::kIntegerSum, IntegerSumImplementations(), &rows);
  AppendRows(PrimitiveKind::kInterpolate, InterpolateImplementations(), &rows);
  AppendRows(PrimitiveKind::kMaxWindow, MaxWindowImplementations(), &rows);
  AppendRows(PrimitiveKind::kTopK, TopKImplementations(), &rows);
  AppendRows(PrimitiveKind::kElementwise, ElementwiseImplementations(), &rows);
  return rows;
}

}  // namespace tilewire
