// SPDX-License-Identifier: Apache-2.0
//
// Networks by hand, without an ONNX file: each call adds one operation and gives its value. Weights
// are pseudo-random and depend on their name only, so that a network built for another batch has
// the same ones.
#ifndef TESTS_ENGINE_LOWERING_NETWORK_BUILDER_H_
#define TESTS_ENGINE_LOWERING_NETWORK_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/network/network.h"

namespace tilewire::network {

std::vector<float> PseudoRandom(const std::string& name, int64_t count, float from, float to);

struct ConvolutionOptions {
  int64_t kernel = 3, stride = 1, padding = 1, dilation = 0, groups = 1;
  bool bias = true, scale = false;
  std::vector<FusedStep> fused;
  bool pool = false;  // a 2x2 maximum after it
};

struct InnerProductOptions {
  bool bias = true, scale = false, transposed = false;
  std::vector<FusedStep> fused;
};

FusedStep Relu();
FusedStep Add(ValueId addend);

class NetworkBuilder {
 public:
  ValueId Input(const std::string& name, Dims dims);
  ValueId Conv(const std::string& name, ValueId src, int64_t channels,
               ConvolutionOptions options = {});
  // Without groups and fused pooling.
  ValueId Deconv(const std::string& name, ValueId src, int64_t channels,
                 ConvolutionOptions options = {});
  ValueId Fc(const std::string& name, ValueId src, int64_t channels,
             InnerProductOptions options = {});
  ValueId Pool(const std::string& name, ValueId src, Pooling::Algorithm algorithm, int64_t kernel,
               int64_t stride, int64_t padding);
  ValueId MaxPool(const std::string& name, ValueId src, int64_t kernel, int64_t stride,
                  int64_t padding) {
    return Pool(name, src, Pooling::Algorithm::kMax, kernel, stride, padding);
  }
  ValueId GlobalAverage(const std::string& name, ValueId src);
  // By the statistics of the batch; scale and shift are inputs, mean and variance further results.
  ValueId Normalized(const std::string& name, ValueId src);
  ValueId Elementwise(const std::string& name, ValueId src, functions::EltwiseOp op);
  ValueId SumOf(const std::string& name, std::vector<ValueId> srcs);
  ValueId ConcatOf(const std::string& name, std::vector<ValueId> srcs, int axis = 1);
  ValueId Shuffled(const std::string& name, ValueId src, int64_t group_size);
  ValueId Reshaped(const std::string& name, ValueId src, Dims dims);
  ValueId Transposed(const std::string& name, ValueId src, std::vector<int> order);
  ValueId SoftmaxOf(const std::string& name, ValueId src, int axis);

  // A literal whose elements are neither 0 nor all alike.
  ValueId Numbers(const std::string& name, const Dims& dims);

  ValueId AddOperation(const std::string& name, OperationParams params, std::vector<ValueId> srcs,
                       Dims dims, DataType type = DataType::kF32);

  // A further result of the operation that the last call added.
  ValueId AddResult(const std::string& name, Dims dims);

  const Dims& dims(ValueId id) const { return network_.values[id].dims; }
  // The operation that the last call added, to be changed.
  Operation& last() { return network_.operations.back(); }
  void SetType(ValueId id, DataType type) { network_.values[id].type = type; }

  Network Finish(std::vector<ValueId> outputs);

 private:
  ValueId AddValue(const std::string& name, Dims dims);

  Network network_;
};

}  // namespace tilewire::network

#endif  // TESTS_ENGINE_LOWERING_NETWORK_BUILDER_H_
