// SPDX-License-Identifier: Apache-2.0
//
// The operations of a network (engine/network/network.h has the formulas), as plain loops over
// row-major tensors of doubles. Fused steps, the pooling after them, and the params that turn
// integers into real numbers and back are the interpreter's.
#ifndef TESTS_SUPPORT_ORACLE_OPERATIONS_H_
#define TESTS_SUPPORT_ORACLE_OPERATIONS_H_

#include <algorithm>
#include <vector>

#include "engine/memory/index_walk.h"
#include "engine/network/network.h"

namespace tilewire::testing {

using Elements = std::vector<double>;  // row-major

// A tensor whose elements are kept elsewhere.
struct Shaped {
  const Elements& elements;
  const Dims& dims;

  // With missing leading dimensions, and with index 0 along dimensions of size 1.
  double AtBroadcast(const Dims& index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      offset = offset * dims[d] + (dims[d] == 1 ? 0 : index[index.size() - dims.size() + d]);
    return elements[offset];
  }
};

// The sources of an operation, and the shape and type of its result.
struct Operands {
  std::vector<Shaped> srcs;
  const Dims& dst;
  DataType type;
  std::vector<DataType> src_types = {};
};

// The element that `element(index)` gives for each index of `dims`.
template <typename Element>
Elements ForEach(const Dims& dims, Element element) {
  Elements elements;
  ForEachIndex(dims, [&](const Dims& index) { elements.push_back(element(index)); });
  return elements;
}

// element_operations.cc: element by element, or of the elements along a dimension.
Elements Compute(const graph::Activation& activation, const Operands& operands);
Elements Compute(const graph::Elementwise& elementwise, const Operands& operands);
Elements Compute(const graph::Sum& sum, const Operands& operands);
Elements Compute(const graph::Quantize& quantize, const Operands& operands);
Elements Compute(const graph::QuantizationRange& range, const Operands& operands);
Elements Compute(const graph::DynamicQuantize& quantize, const Operands& operands);
Elements Compute(const graph::Dequantize& dequantize, const Operands& operands);
Elements Compute(const graph::ScaleBytes& bytes, const Operands& operands);
Elements Compute(const graph::IntegerSum& sum, const Operands& operands);
Elements Compute(const graph::Softmax& softmax, const Operands& operands);
Elements Compute(const graph::LayerNormalization& norm, const Operands& operands);
Elements Compute(const graph::Lrn& lrn, const Operands& operands);
Elements Compute(const graph::Reduce& reduce, const Operands& operands);
Elements Compute(const graph::Interpolate& interpolate, const Operands& operands);
Elements Compute(const graph::TopK& top, const Operands& operands);

// moving_operations.cc: the elements of the sources, elsewhere.
Elements Compute(const graph::Literal& literal, const Operands& operands);
Elements Compute(const graph::Convert& convert, const Operands& operands);
Elements Compute(const graph::Reshape& reshape, const Operands& operands);
Elements Compute(const graph::Transpose& transpose, const Operands& operands);
Elements Compute(const graph::Concat& concat, const Operands& operands);
Elements Compute(const graph::Shuffle& shuffle, const Operands& operands);
Elements Compute(const graph::Select& select, const Operands& operands);
Elements Compute(const graph::GatherChannels& gather, const Operands& operands);
Elements Compute(const graph::Gather& gather, const Operands& operands);

// window_operations.cc: sums of products, and what slides over a source.
Elements Compute(const graph::Convolution& convolution, const Operands& operands);
Elements Compute(const graph::ComputedConvolution& convolution, const Operands& operands);
Elements Compute(const graph::DynamicConvolution& convolution, const Operands& operands);
Elements Compute(const graph::Deconvolution& deconvolution, const Operands& operands);
Elements Compute(const graph::DynamicInnerProduct& product, const Operands& operands);
Elements Compute(const graph::InnerProduct& product, const Operands& operands);
Elements Compute(const graph::Matmul& matmul, const Operands& operands);
Elements Compute(const graph::Attention& attention, const Operands& operands);
Elements Compute(const graph::Pooling& pooling, const Operands& operands);
Elements Compute(const graph::MaxWindow& window, const Operands& operands);

// region_operations.cc.
Elements Compute(const graph::RoiAlign& pooling, const Operands& operands);

// recurrent_operations.cc.
Elements Compute(const graph::Rnn& rnn, const Operands& operands);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_ORACLE_OPERATIONS_H_
