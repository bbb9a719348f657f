// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>
#include <vector>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

bool IsOnePixel(const Dims& dims) { return dims.size() == 4 && dims[2] == 1 && dims[3] == 1; }

// Whether the product, applied to one pixel, can be a 1x1 convolution.
bool MayBeConvolution(const InnerProduct& product) {
  return !HasSum(product.fused) && !product.weights.transposed && !product.src_quantization &&
         !product.dst_quantization;
}

// Returns the chain of inner products that ends in `value` and starts at single pixels, the last
// one first, or an empty vector. Each result in the chain has one use.
std::vector<int> ProductsUpTo(Editor& editor, ValueId value) {
  std::vector<int> products;
  while (!IsOnePixel(editor.dims(value))) {
    const int before = editor.producer(value);
    const InnerProduct* product = editor.As<InnerProduct>(before);
    if (product == nullptr || !MayBeConvolution(*product) || editor.use_count(value) != 1)
      return {};
    products.push_back(before);
    value = editor.operation(before).srcs[0];
  }
  return products;
}

void MakeConvolution(Editor& editor, int op) {
  OperationParams& params = editor.operation(op).params;
  params = ConvolutionOfPixels(std::get<InnerProduct>(std::move(params)), /*spatial=*/2);
  Dims& dims = editor.network().values[editor.operation(op).dst].dims;
  dims.insert(dims.end(), {1, 1});
}

}  // namespace

void ConvolveGates(Network* network) {
  ForEachOperation(network, [](Editor& editor, int i) {
    if (editor.As<Reshape>(i) == nullptr) return;
    const Operation& reshape = editor.operation(i);
    const ValueId flat = reshape.srcs[0], gate = reshape.dst;
    const Dims& dims = editor.dims(gate);
    if (editor.dims(flat).size() != 2 || !IsOnePixel(dims) || dims[1] != editor.dims(flat)[1])
      return;
    const std::vector<int> products = ProductsUpTo(editor, flat);
    if (products.empty()) return;
    for (int product : products) MakeConvolution(editor, product);
    editor.ReplaceUses(gate, flat);
    editor.Remove(i);
  });
}

}  // namespace tilewire::network
