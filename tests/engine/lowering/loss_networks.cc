// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::network {
namespace {

struct LossResults {
  ValueId loss = kNoValue, gradient = kNoValue;
};

// Losses of an image that a convolution computes, of rows, and of an input.
class Losses {
 public:
  Losses(int64_t n, bool mean) : n_(n), mean_(mean) {}

  std::vector<LossResults> Build() {
    const ValueId x = b_.Input("x", {n_, 3, 6, 5});
    const ValueId pixels = b_.Conv("pixels", x, 20);
    const ValueId rows = b_.Reshaped("rows", b_.GlobalAverage("pool", pixels), {n_, 20});
    Loss plain = Of(Loss::Function::kSoftmaxCrossEntropy);
    Loss weighted = plain;
    weighted.label_smoothing = 0.1;
    weighted.ignore_index = 1;
    weighted.class_weights = PseudoRandom("weights", 20, 0.5f, 2);
    Loss binary = Of(Loss::Function::kBinaryCrossEntropy), weighted_binary = binary;
    weighted_binary.class_weights = weighted.class_weights;
    return {Add("pixel", weighted, pixels, Labels("pixel_labels", {n_, 6, 5})),
            Add("row", plain, rows, Labels("row_labels", {n_})),
            Add("row_again", weighted, rows, Labels("row_labels_again", {n_})),
            Add("probability", plain, pixels, Between("probabilities", {n_, 20, 6, 5}, 0.1f, 0.9f)),
            Add("binary", binary, pixels, Between("truths", {n_, 20, 6, 5}, 0.1f, 0.9f)),
            Add("weighted", weighted_binary, pixels, Between("more", {n_, 20, 6, 5}, 0.1f, 0.9f)),
            Add("square", Of(Loss::Function::kMeanSquaredError), x,
                Between("numbers", {n_, 3, 6, 5}, -2, 2)),
            Add("huber", Of(Loss::Function::kHuber), rows, Between("wider", {n_, 20}, -2, 2))};
  }
  NetworkBuilder& builder() { return b_; }

 private:
  Loss Of(Loss::Function function) const {
    Loss loss;
    loss.function = function;
    loss.gives_gradient = true;
    loss.mean = mean_;
    loss.factor = 0.5;
    loss.delta = 0.75;
    return loss;
  }

  ValueId Between(const std::string& name, const Dims& dims, float from, float to) {
    const ValueId numbers = b_.Numbers(name + "/numbers", dims);  // from 0.25 to 0.85
    const float factor = (to - from) / 0.6f;
    const functions::EltwiseOp linear{functions::EltwiseAlgorithm::kLinear, factor,
                                      from - 0.25f * factor};
    return b_.AddOperation(name, Activation{linear}, {numbers}, dims);
  }
  ValueId Labels(const std::string& name, const Dims& dims) {
    const ValueId numbers = Between(name + "/reals", dims, 0.5f, 3.5f);
    return b_.AddOperation(name, Convert{}, {numbers}, dims, DataType::kS64);
  }

  LossResults Add(const std::string& name, const Loss& loss, ValueId x, ValueId targets) {
    const Dims dims = b_.dims(x);
    const ValueId number = b_.AddOperation(name, loss, {x, targets}, {1});
    return {number, b_.AddResult(name + "/gradient", dims)};
  }

  const int64_t n_;
  const bool mean_;
  NetworkBuilder b_;
};

// Sums over the batch: an image's gradient does not depend on the others.
Network GradientsOfLosses(int64_t n) {
  Losses losses(n, /*mean=*/false);
  std::vector<ValueId> outputs;
  for (const LossResults& one : losses.Build()) outputs.push_back(one.gradient);
  return losses.builder().Finish(outputs);
}

}  // namespace

Network MeanLosses(int64_t n) {
  Losses losses(n, /*mean=*/true);
  std::vector<ValueId> outputs;
  for (const LossResults& one : losses.Build()) {
    outputs.push_back(one.loss);
    outputs.push_back(one.gradient);
  }
  return losses.builder().Finish(outputs);
}

absl::Span<const NetworkCase> LossNetworks() {
  static constexpr NetworkCase kCases[] = {{"GradientsOfLosses", GradientsOfLosses}};
  return kCases;
}

}  // namespace tilewire::network
