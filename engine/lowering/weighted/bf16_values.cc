// SPDX-License-Identifier: Apache-2.0
//
// Every value is a candidate at first. Values are struck off, from the last operation to the first
// and over again, until nothing changes: what an operation can read as bf16 may depend on what it
// writes, and a pooling or a concatenation writes bf16 only if it reads it.
#include "engine/lowering/weighted/bf16_values.h"

#include <variant>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "engine/kernels/planes/bf16_rounding.h"
#include "engine/lowering/weighted/convolution_request.h"
#include "engine/primitives/convolution/row_choice.h"

namespace tilewire::lowering {
namespace {

class Bf16Candidates {
 public:
  Bf16Candidates(const network::Network& network, const std::vector<int>& uses,
                 const LoweringContext& context)
      : network_(network),
        uses_(uses),
        context_(context),
        computed_(network.values.size(), false),
        narrow_(computed_) {
    for (const network::Operation& operation : network.operations) {
      computed_[operation.dst] = true;
      const network::Value& value = network.values[operation.dst];
      narrow_[operation.dst] = value.type == DataType::kF32 && value.dims.size() >= 3;
    }
  }

  std::vector<bool> Find() && {
    while (StrikeOff()) {
    }
    return std::move(narrow_);
  }

 private:
  // Whether a value was struck off.
  bool StrikeOff() {
    const std::vector<bool> before = narrow_;
    std::vector<int> readers(narrow_.size(), 0);  // that round the value
    for (auto it = network_.operations.rbegin(); it != network_.operations.rend(); ++it) {
      const ValueId dst = it->dst;
      if (readers[dst] != uses_[dst] || uses_[dst] == 0 || !Writes(*it)) narrow_[dst] = false;
      if (!Reads(*it)) continue;
      for (ValueId src : it->srcs) ++readers[src];
    }
    return narrow_ != before;
  }

  // Whether the operation can write its result as bf16, from the sources that are candidates.
  bool Writes(const network::Operation& operation) const {
    if (!narrow_[operation.dst]) return false;
    if (const auto* convolution = std::get_if<network::Convolution>(&operation.params))
      return IsServed(*convolution, operation, DataType::kF32, DataType::kBf16);
    return PassesOn(operation) &&
           absl::c_all_of(operation.srcs, [this](ValueId src) { return narrow_[src]; });
  }

  // Whether the operation reads its sources as bf16 without a change of its result.
  bool Reads(const network::Operation& operation) const {
    const bool writes = narrow_[operation.dst];
    if (const auto* convolution = std::get_if<network::Convolution>(&operation.params)) {
      return IsServed(*convolution, operation, DataType::kBf16,
                      writes ? DataType::kBf16 : DataType::kF32);
    }
    return writes && PassesOn(operation);
  }

  bool PassesOn(const network::Operation& operation) const {
    if (const auto* pooling = std::get_if<network::Pooling>(&operation.params))
      return pooling->algorithm == network::Pooling::Algorithm::kMax;
    const auto* concat = std::get_if<network::Concat>(&operation.params);
    if (concat == nullptr || concat->axis != 1) return false;
    const auto parts = absl::MakeConstSpan(operation.srcs).first(operation.srcs.size() - 1);
    return absl::c_all_of(parts, [this](ValueId src) {
      return network_.values[src].dims[1] % kBf16LineNumbers == 0;
    });
  }

  // Whether a convolution between tensors of these types is done by the algorithm, and with the
  // products, that do it between tensors of f32.
  bool IsServed(const network::Convolution& convolution, const network::Operation& operation,
                DataType src, DataType dst) const {
    if (convolution.src_quantization || convolution.dst_quantization) return false;
    const Fusion fusion = PlanPostOps(convolution.fused, convolution.bias);
    const bool ends_in_sum =
        fusion.taken != convolution.fused.size() || fusion.addend != network::kNoValue;
    if (dst == DataType::kBf16 && ends_in_sum) return false;
    const bool is_read_in_blocks = computed_[operation.srcs[0]];
    const ImplementationFacts* f32 =
        RowFor(convolution, operation, fusion, DataType::kF32, DataType::kF32);
    const ImplementationFacts* row = RowFor(convolution, operation, fusion, src, dst);
    // A row for first layers reads pixels; blocks of few channels are read by another one, which
    // writes f32 (ForSourceAsItIs() in convolution.cc).
    if (f32 == nullptr || (is_read_in_blocks && f32->traits.algorithm == convolution::kFirstLayer))
      return false;
    return row != nullptr && !row->traits.is_reference &&
           row->traits.algorithm == f32->traits.algorithm &&
           row->traits.precision == f32->traits.precision &&
           (src == DataType::kF32 || row->traits.precision == Precision::kBf16);
  }

  const ImplementationFacts* RowFor(const network::Convolution& convolution,
                                    const network::Operation& operation, const Fusion& fusion,
                                    DataType src, DataType dst) const {
    const Dims& computed = ComputedDims(convolution, network_.values[operation.dst].dims);
    const auto from = MemoryDesc::CreateAny(network_.values[operation.srcs[0]].dims, src);
    const auto to = MemoryDesc::CreateAny(computed, dst);
    if (!from.ok() || !to.ok()) return nullptr;
    const Precision permitted = context_.PrecisionOf(operation.name);
    const auto desc = ConvolutionDescOf(convolution, *from, *to, fusion.bias, permitted, context_);
    if (!desc.ok()) return nullptr;
    Attributes attributes = fusion.attributes;
    attributes.precision = PrecisionOf(convolution, *desc, permitted);
    return convolution::ChooseRow(*desc, attributes, context_.options);
  }

  const network::Network& network_;
  const std::vector<int>& uses_;
  const LoweringContext& context_;
  std::vector<bool> computed_;  // per value: not an input of the network
  std::vector<bool> narrow_;    // a candidate
};

}  // namespace

std::vector<bool> Bf16Values(const network::Network& network, const std::vector<int>& uses,
                             const LoweringContext& context) {
  const bool is_permitted = absl::c_any_of(network.operations, [&](const auto& operation) {
    return context.PrecisionOf(operation.name) == Precision::kBf16;
  });
  if (!is_permitted) return std::vector<bool>(network.values.size(), false);
  return Bf16Candidates(network, uses, context).Find();
}

}  // namespace tilewire::lowering
