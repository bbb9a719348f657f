// SPDX-License-Identifier: Apache-2.0
//
// The operations of a network (engine/network/network.h has the formulas), as plain loops over
// row-major tensors of doubles. ComputeAll() gives the further results, too. Fused steps, the
// pooling after them, and the params that turn integers into real numbers and back are the
// interpreter's.
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
  bool functions_in_double = false;  // else those of elements are f32's
};

// The element that `element(index)` gives for each index of `dims`.
template <typename Element>
Elements ForEach(const Dims& dims, Element element) {
  Elements elements;
  ForEachIndex(dims, [&](const Dims& index) { elements.push_back(element(index)); });
  return elements;
}

// element_operations.cc: element by element, or of the elements along a dimension.
Elements Compute(const network::Activation& activation, const Operands& operands);
Elements Compute(const network::Elementwise& elementwise, const Operands& operands);
Elements Compute(const network::Sum& sum, const Operands& operands);
Elements Compute(const network::Quantize& quantize, const Operands& operands);
Elements Compute(const network::QuantizationRange& range, const Operands& operands);
Elements Compute(const network::DynamicQuantize& quantize, const Operands& operands);
Elements Compute(const network::Dequantize& dequantize, const Operands& operands);
Elements Compute(const network::ScaleBytes& bytes, const Operands& operands);
Elements Compute(const network::IntegerSum& sum, const Operands& operands);
Elements Compute(const network::Softmax& softmax, const Operands& operands);
Elements Compute(const network::Lrn& lrn, const Operands& operands);
Elements Compute(const network::Reduce& reduce, const Operands& operands);
Elements Compute(const network::Interpolate& interpolate, const Operands& operands);
Elements Compute(const network::TopK& top, const Operands& operands);

// normalizing_operations.cc.
std::vector<Elements> ComputeAll(const network::LayerNormalization& norm, const Operands& operands);
std::vector<Elements> ComputeAll(const network::BatchNormalization& norm, const Operands& operands);

// moving_operations.cc: the elements of the sources, elsewhere.
Elements Compute(const network::Literal& literal, const Operands& operands);
Elements Compute(const network::Convert& convert, const Operands& operands);
Elements Compute(const network::Reshape& reshape, const Operands& operands);
Elements Compute(const network::Transpose& transpose, const Operands& operands);
Elements Compute(const network::Concat& concat, const Operands& operands);
Elements Compute(const network::Shuffle& shuffle, const Operands& operands);
Elements Compute(const network::Select& select, const Operands& operands);
Elements Compute(const network::GatherChannels& gather, const Operands& operands);
Elements Compute(const network::Gather& gather, const Operands& operands);

// window_operations.cc: sums of products, and what slides over a source.
Elements Compute(const network::Convolution& convolution, const Operands& operands);
Elements Compute(const network::ComputedConvolution& convolution, const Operands& operands);
Elements Compute(const network::DynamicConvolution& convolution, const Operands& operands);
Elements Compute(const network::Deconvolution& deconvolution, const Operands& operands);
Elements Compute(const network::DynamicInnerProduct& product, const Operands& operands);
Elements Compute(const network::InnerProduct& product, const Operands& operands);
Elements Compute(const network::Matmul& matmul, const Operands& operands);
Elements Compute(const network::Attention& attention, const Operands& operands);
Elements Compute(const network::Pooling& pooling, const Operands& operands);
Elements Compute(const network::MaxWindow& window, const Operands& operands);

// gradient_operations.cc.
std::vector<Elements> ComputeAll(const network::Pooling& pooling, const Operands& operands);
Elements Compute(const network::ComputedDeconvolution& deconvolution, const Operands& operands);
Elements Compute(const network::ConvolutionDataGradient& gradient, const Operands& operands);
std::vector<Elements> ComputeAll(const network::ConvolutionWeightsGradient& gradient,
                                 const Operands& operands);
Elements Compute(const network::MatmulGradient& gradient, const Operands& operands);
Elements Compute(const network::ActivationGradient& gradient, const Operands& operands);
Elements Compute(const network::PoolingGradient& gradient, const Operands& operands);
Elements Compute(const network::SoftmaxGradient& gradient, const Operands& operands);
std::vector<Elements> ComputeAll(const network::BatchNormalizationGradient& gradient,
                                 const Operands& operands);
std::vector<Elements> ComputeAll(const network::LayerNormalizationGradient& gradient,
                                 const Operands& operands);
Elements Compute(const network::LrnGradient& gradient, const Operands& operands);
Elements Compute(const network::ReduceGradient& gradient, const Operands& operands);
Elements Compute(const network::GatherGradient& gradient, const Operands& operands);
// loss_operations.cc.
std::vector<Elements> ComputeAll(const network::Loss& loss, const Operands& operands);

// region_operations.cc.
Elements Compute(const network::RoiAlign& pooling, const Operands& operands);

// recurrent_operations.cc.
Elements Compute(const network::Rnn& rnn, const Operands& operands);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_ORACLE_OPERATIONS_H_
