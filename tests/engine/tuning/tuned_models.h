// SPDX-License-Identifier: Apache-2.0
//
// Models to be tuned, and what becomes of their files.
#ifndef TESTS_ENGINE_TUNING_TUNED_MODELS_H_
#define TESTS_ENGINE_TUNING_TUNED_MODELS_H_

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/explanation.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/model_source.h"
#include "engine/tuning/qdq_file.h"
#include "engine/tuning/range_histogram.h"
#include "gtest/gtest.h"
#include "tests/support/onnx_builder.h"

namespace tilewire::testing {

inline const Dims kResidualInput = {1, 8, 12, 12};

// Four convolutions with a sum and a pooling among them, and a product at the end.
inline OnnxBuilder ResidualModel() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 8, 12, 12}).Floats("w_stem", {16, 8, 1, 1}).Floats("b_stem", {16});
  model.Node("Conv", {"x", "w_stem", "b_stem"}, {"stem"}).Node("Relu", {"stem"}, {"stem_r"});
  model.Node("AveragePool", {"stem_r"}, {"pooled"},
             {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  model.Floats("w_first", {16, 16, 3, 3}).Floats("w_second", {16, 16, 3, 3}).Floats("b", {16});
  model.Node("Conv", {"pooled", "w_first", "b"}, {"first"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Relu", {"first"}, {"first_r"});
  model.Node("Conv", {"first_r", "w_second", "b"}, {"second"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Add", {"second", "pooled"}, {"sum"}).Node("Relu", {"sum"}, {"sum_r"});
  model.Floats("w_third", {16, 16, 1, 1}).Node("Conv", {"sum_r", "w_third", "b"}, {"third"});
  model.Node("GlobalAveragePool", {"third"}, {"mean"}).Node("Flatten", {"mean"}, {"flat"});
  model.Floats("w_end", {16, 10}).Node("Gemm", {"flat", "w_end"}, {"y"}).Output("y");
  return model;
}

inline Engine& EngineOfTests() {
  static Engine* const engine = Engine::Create({.threads = 1}).value().release();
  return *engine;
}

// A model's file and its layers, which refer to nothing in it.
struct Opened {
  std::unique_ptr<tuning::ModelSource> source;
  std::vector<tuning::Layer> layers;
};

inline Opened Open(const std::string& bytes) {
  auto source = tuning::ModelSource::Parse(bytes, "made");
  EXPECT_TRUE(source.ok()) << source.status();
  Opened opened{.source = std::make_unique<tuning::ModelSource>(*std::move(source))};
  auto layers = tuning::FindLayers(*opened.source);
  EXPECT_TRUE(layers.ok()) << layers.status();
  opened.layers = *std::move(layers);
  return opened;
}

inline std::shared_ptr<const Model> LoadBytes(const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "/tuned_model.onnx";
  WriteFile(path, bytes);
  auto model = EngineOfTests().LoadModel(path);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

// Numbers in [0, 2) that depend on the seed.
inline std::vector<float> MadeUp(const Dims& dims, uint32_t seed = 1) {
  std::vector<float> numbers(ElementCount(dims).value());
  for (float& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<float>(seed >> 8) / 8388608.0f;
  }
  return numbers;
}

inline InputTensor ViewOf(const std::vector<float>& numbers, const Dims& dims) {
  return {dims,
          Layout::kNchw,
          {{reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)}}};
}

// All outputs of a run on made-up numbers, one after the other.
inline std::vector<float> FloatsOf(const Model& model, const Dims& dims) {
  const std::vector<float> numbers = MadeUp(dims);
  const auto outputs = model.Run({ViewOf(numbers, dims)}, {}, {});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<float> floats;
  for (const OutputTensor& output : *outputs) {
    const auto* elements = reinterpret_cast<const float*>(output.bytes.data());
    floats.insert(floats.end(), elements, elements + output.bytes.size() / sizeof(float));
  }
  return floats;
}

// Parameters for tensors by their extremes on made-up numbers.
inline std::map<std::string, network::QuantizationParams> ParamsFor(
    const tuning::ModelSource& source, const std::vector<std::string>& tensors) {
  std::vector<std::string> computed;
  for (const std::string& tensor : tensors) {
    if (!source.IsInput(tensor)) computed.push_back(tensor);
  }
  const auto model = LoadBytes(tuning::WithOutputs(source, computed));
  const Dims dims = model->signature().inputs[0].dims.size() == 4
                        ? kResidualInput
                        : model->signature().inputs[0].dims;
  const std::vector<float> numbers = MadeUp(dims);
  const auto outputs = model->Run({ViewOf(numbers, dims)}, {}, {});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::map<std::string, tuning::RangeHistogram> histograms;
  for (const OutputTensor& output : *outputs) {
    const auto* elements = reinterpret_cast<const float*>(output.bytes.data());
    histograms[model->signature().outputs[output.index].name].Add(
        {elements, output.bytes.size() / sizeof(float)});
  }
  histograms[model->signature().inputs[0].name].Add(numbers);
  std::map<std::string, network::QuantizationParams> params;
  for (const std::string& tensor : tensors)
    params[tensor] = ByteParams(histograms[tensor].Find(tuning::RangeMethod::kExtremes));
  return params;
}

// The nodes of a plan's steps of this primitive whose source is f32.
inline std::vector<std::string> StepsOfFloats(const Model& model, const std::string& primitive) {
  std::vector<std::string> nodes;
  const auto explanation = model.Explain({});
  EXPECT_TRUE(explanation.ok()) << explanation.status();
  for (const PlanStep& step : explanation->steps) {
    if (step.primitive != primitive || step.tensors.empty()) continue;
    if (step.tensors[0].layout.rfind("f32", 0) == 0) nodes.push_back(step.node);
  }
  return nodes;
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_TUNING_TUNED_MODELS_H_
