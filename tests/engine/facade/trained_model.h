// SPDX-License-Identifier: Apache-2.0
//
// Small models to be trained, their batches, and the bits of their parameters.
#ifndef TESTS_ENGINE_FACADE_TRAINED_MODEL_H_
#define TESTS_ENGINE_FACADE_TRAINED_MODEL_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/trainer.h"
#include "gtest/gtest.h"
#include "tests/engine/facade/typed_model.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {

// Rows of six numbers to four classes, by way of sixteen.
inline OnnxBuilder Perceptron() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 6}).Floats("w1", {16, 6}).Floats("b1", {16});
  model.Floats("w2", {4, 16}).Floats("b2", {4});
  model.Node("Gemm", {"x", "w1", "b1"}, {"h"}, {Int("transB", 1)}).Node("Relu", {"h"}, {"r"});
  model.Node("Gemm", {"r", "w2", "b2"}, {"y"}, {Int("transB", 1)}).Output("y");
  return model;
}

// Images of 3 channels to four classes.
inline OnnxBuilder ConvolutionNet() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 3, 8, 8}).Floats("c1", {8, 3, 3, 3}).Floats("cb1", {8});
  model.Floats("scale", {8}, std::vector<float>(8, 1)).Floats("shift", {8});
  model.Floats("mean", {8}, std::vector<float>(8, 0));
  model.Floats("variance", {8}, std::vector<float>(8, 1));
  model.Floats("c2", {20, 8, 3, 3}).Floats("w", {4, 20}).Floats("b", {4});
  model.Node("Conv", {"x", "c1", "cb1"}, {"a"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("BatchNormalization", {"a", "scale", "shift", "mean", "variance"}, {"n"});
  model.Node("Relu", {"n"}, {"r"});
  model.Node("MaxPool", {"r"}, {"p"}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  model.Node("Conv", {"p", "c2"}, {"d"}, {Ints("pads", {1, 1, 1, 1})}).Node("Relu", {"d"}, {"e"});
  model.Node("GlobalAveragePool", {"e"}, {"g"}).Node("Flatten", {"g"}, {"f"});
  model.Node("Gemm", {"f", "w", "b"}, {"y"}, {Int("transB", 1)}).Output("y");
  return model;
}

// Images of 3 channels, made smaller and larger again, to the four channels' means.
inline OnnxBuilder Autoencoder() {
  OnnxBuilder model(13);
  const auto halves = [] { return std::vector{Ints("strides", {2, 2})}; };
  model.Input("x", {-1, 3, 8, 8}).Floats("w1", {16, 3, 2, 2}).Floats("b1", {16});
  model.Floats("w2", {16, 24, 2, 2}).Floats("b2", {24}).Floats("w3", {24, 4, 3, 3});
  model.Floats("b3", {4});
  model.Node("Conv", {"x", "w1", "b1"}, {"a"}, halves()).Node("Relu", {"a"}, {"b"});
  model.Node("ConvTranspose", {"b", "w2", "b2"}, {"c"}, halves()).Node("Relu", {"c"}, {"d"});
  model.Node("ConvTranspose", {"d", "w3", "b3"}, {"e"},
             {Ints("strides", {2, 2}), Ints("pads", {1, 1, 1, 1}), Ints("output_padding", {1, 1})});
  model.Node("Tanh", {"e"}, {"t"}).Node("GlobalAveragePool", {"t"}, {"g"});
  model.Node("Flatten", {"g"}, {"y"}).Output("y");
  return model;
}

// Pseudo-random numbers in [-1, 1); the next ones follow from what becomes of `seed`.
inline std::vector<float> NumbersFrom(uint32_t* seed, int64_t count) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    *seed = *seed * 1664525u + 1013904223u;
    numbers.push_back(static_cast<float>(*seed >> 8) / 8388608.0f - 1);
  }
  return numbers;
}

// Pseudo-random inputs, and labels that follow from them.
struct TrainingBatch {
  TrainingBatch(const Dims& dims, int64_t classes, uint32_t seed) : dims_(dims) {
    const int64_t count = *ElementCount(dims), each = count / dims[0];
    std::vector<float> x = NumbersFrom(&seed, count);
    std::vector<int64_t> labels;
    for (int64_t n = 0; n < dims[0]; ++n) {
      const int64_t label = (x[n * each] > 0 ? 1 : 0) + (x[n * each + 1] > 0 ? 2 : 0);
      labels.push_back(label % classes);
      for (int64_t i = 0; i < each; ++i) x[n * each + i] += 0.25f * static_cast<float>(label);
    }
    inputs_ = Bytes(x);
    labels_ = Bytes(labels);
  }

  std::vector<InputTensor> inputs() const { return {{dims_, Layout::kNchw, {inputs_}}}; }
  std::vector<InputTensor> targets() const { return {{{dims_[0]}, Layout::kNchw, {labels_}}}; }

  void SetInput(int64_t i, float value) { std::memcpy(&inputs_[i * 4], &value, sizeof(value)); }
  void SetLabel(int64_t i, int64_t value) { std::memcpy(&labels_[i * 8], &value, sizeof(value)); }

 private:
  Dims dims_;
  std::string inputs_, labels_;
};

inline TrainingSpec CrossEntropy(double rate = 0.1) {
  TrainingSpec spec;
  spec.losses = {LossSpec()};
  spec.schedule.rate = rate;
  return spec;
}

inline Engine& EngineOfThreads(int threads) {
  static auto* const engines = new std::map<int, std::unique_ptr<Engine>>;
  std::unique_ptr<Engine>& engine = (*engines)[threads];
  if (engine == nullptr)
    engine = Engine::Create({.threads = threads, .threads_per_request = threads}).value();
  return *engine;
}

inline std::string TrainedFile(const OnnxBuilder& model) {
  const std::string path = ::testing::TempDir() + "/to_train.onnx";
  WriteFile(path, model.Serialize());
  return path;
}

inline absl::StatusOr<std::unique_ptr<Trainer>> TrainerOf(const OnnxBuilder& model,
                                                          const TrainingSpec& spec,
                                                          int threads = 1) {
  return CreateTrainer(&EngineOfThreads(threads), TrainedFile(model), spec);
}

// The texts of the trainer's notes, of one kind or of all.
inline std::vector<std::string> NotesOf(const Trainer& trainer,
                                        std::optional<TrainingNote::Kind> kind = std::nullopt) {
  std::vector<std::string> texts;
  for (const TrainingNote& note : trainer.notes()) {
    if (note.kind == kind.value_or(note.kind)) texts.push_back(note.text);
  }
  return texts;
}

// By name; running statistics too, where they are named.
using ParametersByName = std::map<std::string, std::vector<float>>;
inline ParametersByName ParametersOf(const Trainer& trainer,
                                     const std::vector<std::string>& more = {}) {
  std::vector<std::string> names = more;
  for (const ParameterSpec& parameter : trainer.parameters()) names.push_back(parameter.name);
  ParametersByName parameters;
  for (const std::string& name : names) {
    const auto elements = trainer.Parameter(name);
    EXPECT_THAT(elements, IsOk());
    if (elements.ok()) parameters[name] = *elements;
  }
  return parameters;
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_FACADE_TRAINED_MODEL_H_
