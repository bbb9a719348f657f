// SPDX-License-Identifier: Apache-2.0
//
// A convolution or inner product of dequantised integers, with weights that are s8, reads the
// integers, and so does a product of two dequantised matrices. Padding with real zeros is padding
// with the zero point: one that is not 0 is written out before the convolution.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// Whether products of s8 themselves, without a zero point, have sums of 32 bits.
bool HasSumsOfS8(const Weights& weights) {
  return weights.zero_point == 0 && SumFits32Bits(weights);
}

bool IsPadded(const Convolution& convolution) {
  for (size_t i = 0; i < convolution.strides.size(); ++i) {
    if (convolution.padding_left[i] != 0 || convolution.padding_right[i] != 0) return true;
  }
  return false;
}

// The operation that writes out the padding of `convolution`, which then has none. `padded` is its
// result.
Operation TakePadding(const Operation& operation, ValueId integers,
                      const QuantizationParams& params, Convolution* convolution,
                      const Network& network, Value* padded) {
  Select select;
  select.from.resize(2);
  select.fill = static_cast<float>(params.zero_point);
  *padded = network.values[integers];
  absl::StrAppend(&padded->name, "/padded/", operation.name);
  for (size_t i = 0; i < convolution->strides.size(); ++i) {
    int64_t &left = convolution->padding_left[i], &right = convolution->padding_right[i];
    std::vector<IndexRun>& runs = select.from.emplace_back();
    if (left > 0) runs.push_back({-1, 1, left});
    runs.push_back({0, 1, padded->dims[i + 2]});
    if (right > 0) runs.push_back({-1, 1, right});
    padded->dims[i + 2] += left + right;
    left = right = 0;
  }
  return {operation.name, std::move(select), {integers}, kNoValue};
}

// Goes through the operations once and rewrites them.
class Folding {
 public:
  explicit Folding(Network* network)
      : network_(network), dequantized_(network->values.size(), nullptr) {}

  void Run() {
    std::vector<Operation> operations = std::move(network_->operations);
    for (const Operation& operation : operations) {
      const auto* dequantize = std::get_if<Dequantize>(&operation.params);
      if (dequantize == nullptr || dequantize->params.size() != 1) continue;
      if (network_->values[operation.srcs[0]].type == DataType::kF32) continue;
      if (!IsOrdinary(dequantize->params[0].scale)) continue;
      dequantized_[operation.dst] = &operation;
    }
    for (const Operation& operation : operations) done_.push_back(Fold(operation));
    network_->operations = std::move(done_);
  }

 private:
  Operation Fold(Operation operation) {
    const Operation* before = operation.srcs.empty() ? nullptr : dequantized_[operation.srcs[0]];
    if (before == nullptr) return operation;
    const ValueId integers = before->srcs[0];
    const QuantizationParams params = std::get<Dequantize>(before->params).params[0];
    if (auto* convolution = std::get_if<Convolution>(&operation.params);
        convolution != nullptr && HasSumsOfS8(convolution->weights)) {
      convolution->src_quantization = params;
      operation.srcs[0] = integers;
      if (params.zero_point != 0 && IsPadded(*convolution)) {
        Value padded;
        Operation pad = TakePadding(operation, integers, params, convolution, *network_, &padded);
        pad.dst = operation.srcs[0] = static_cast<ValueId>(network_->values.size());
        network_->values.push_back(std::move(padded));
        done_.push_back(std::move(pad));
      }
    } else if (auto* product = std::get_if<InnerProduct>(&operation.params);
               product != nullptr && HasSumsOfS8(product->weights)) {
      product->src_quantization = params;
      operation.srcs[0] = integers;
    } else if (std::holds_alternative<Matmul>(operation.params)) {
      return FoldMatmul(std::move(operation));
    }
    return operation;
  }

  // Folds a product of two dequantised matrices, if the sums of their products fit 32 bits.
  Operation FoldMatmul(Operation operation) {
    IntegerMatmul product;
    QuantizationParams* const params[] = {&product.src_quantization, &product.weights_quantization};
    std::vector<ValueId> integers;
    for (int i = 0; i < 2; ++i) {
      const Operation* before = dequantized_[operation.srcs[i]];
      if (before == nullptr) return operation;
      *params[i] = std::get<Dequantize>(before->params).params[0];
      integers.push_back(before->srcs[0]);
      if (!HoldsZeroPoint(network_->values[integers.back()].type, *params[i])) return operation;
    }
    const int64_t products = network_->values[integers[0]].dims.back();
    if (products == 0 || products > kMostProductsOfBytes) return operation;
    return {operation.name, product, std::move(integers), operation.dst};
  }

  Network* network_;
  std::vector<const Operation*> dequantized_;  // of each value: the Dequantize that makes it
  std::vector<Operation> done_;
};

}  // namespace

void FoldDequantize(Network* network) { Folding(network).Run(); }

}  // namespace tilewire::network
