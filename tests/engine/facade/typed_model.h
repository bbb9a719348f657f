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

inline absl::StatusOr<std::shared_ptr<const Model>> Load(const OnnxBuilder& builder) {
  static Engine* const engine = Engine::Create({.threads = 1}).value().release();
  const std::string path = ::testing::TempDir() + "/typed.onnx";
  WriteFile(path, builder.Serialize());
  return engine->LoadModel(path);
}

// The bytes of output 0 for inputs of these bytes, which are of dims [n] or [].
inline absl::StatusOr<OutputTensor> Answer(const OnnxBuilder& builder,
                                           const std::vector<std::string>& inputs) {
  auto model = Load(builder);
  if (!model.ok()) return model.status();
  std::vector<InputTensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back({(*model)->signature().inputs[i].dims, Layout::kNchw, {inputs[i]}});
  auto outputs = (*model)->Run(tensors, {}, {});
  if (!outputs.ok()) return outputs.status();
  return std::move((*outputs)[0]);
}

template <typename T>
void ExpectAnswer(const OnnxBuilder& builder, const std::vector<std::string>& inputs,
                  const std::vector<T>& expected) {
  const auto answer = Answer(builder, inputs);
  ASSERT_TRUE(answer.ok()) << answer.status();
  std::vector<T> got(answer->bytes.size() / sizeof(T));
  std::memcpy(got.data(), answer->bytes.data(), answer->bytes.size());
  EXPECT_EQ(got, expected);
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_FACADE_TYPED_MODEL_H_
