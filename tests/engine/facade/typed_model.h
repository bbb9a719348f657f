// SPDX-License-Identifier: Apache-2.0
//
// Small models of any element types: loaded, run, and their answers compared byte by byte.
#ifndef TESTS_ENGINE_FACADE_TYPED_MODEL_H_
#define TESTS_ENGINE_FACADE_TYPED_MODEL_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "gtest/gtest.h"
#include "tests/support/onnx_builder.h"

namespace tilewire::testing {

template <typename T>
std::string Bytes(const std::vector<T>& elements) {
  return std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
}

inline Engine& EngineOfModels() {
  static Engine* const engine = Engine::Create({.threads = 1}).value().release();
  return *engine;
}

inline absl::StatusOr<std::shared_ptr<const Model>> Load(const OnnxBuilder& builder) {
  const std::string path = ::testing::TempDir() + "/typed.onnx";
  WriteFile(path, builder.Serialize());
  return EngineOfModels().LoadModel(path);
}

// A graph in an attribute of a node.
inline onnx::AttributeProto Graph(const std::string& name, OnnxBuilder body) {
  onnx::AttributeProto attribute = Attribute(name, onnx::AttributeProto::GRAPH);
  *attribute.mutable_g() = body.graph();
  return attribute;
}

// An input of a request.
struct Given {
  Dims dims;
  std::string bytes;
};

// Output 0 for these inputs.
inline absl::StatusOr<OutputTensor> AnswerOf(const Model& model, const std::vector<Given>& inputs) {
  std::vector<InputTensor> tensors;
  for (const Given& input : inputs) tensors.push_back({input.dims, Layout::kNchw, {input.bytes}});
  auto outputs = model.Run(tensors, {}, {});
  if (!outputs.ok()) return outputs.status();
  return std::move((*outputs)[0]);
}
inline absl::StatusOr<OutputTensor> AnswerOf(const OnnxBuilder& builder,
                                             const std::vector<Given>& inputs) {
  auto model = Load(builder);
  return model.ok() ? AnswerOf(**model, inputs) : model.status();
}

// The same for inputs of the dims that the model declares.
inline absl::StatusOr<OutputTensor> Answer(const OnnxBuilder& builder,
                                           const std::vector<std::string>& inputs) {
  auto model = Load(builder);
  if (!model.ok()) return model.status();
  std::vector<Given> all;
  for (size_t i = 0; i < inputs.size(); ++i)
    all.push_back({(*model)->signature().inputs[i].dims, inputs[i]});
  return AnswerOf(**model, all);
}

template <typename T>
std::vector<T> ElementsOf(const OutputTensor& tensor) {
  std::vector<T> elements(tensor.bytes.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), tensor.bytes.data(), tensor.bytes.size());
  return elements;
}

template <typename T>
void ExpectAnswer(const OnnxBuilder& builder, const std::vector<std::string>& inputs,
                  const std::vector<T>& expected) {
  const auto answer = Answer(builder, inputs);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(ElementsOf<T>(*answer), expected);
}

// Output 0 for these inputs has these dims and elements.
template <typename T, typename Source>
void ExpectTensor(const Source& source, const std::vector<Given>& inputs, const Dims& dims,
                  const std::vector<T>& expected) {
  const auto answer = AnswerOf(source, inputs);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->dims, dims);
  EXPECT_EQ(ElementsOf<T>(*answer), expected);
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_FACADE_TYPED_MODEL_H_
