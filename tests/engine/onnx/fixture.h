// SPDX-License-Identifier: Apache-2.0
//
// From an OnnxBuilder to a model, a network, a network's text, or what it computes.
#ifndef TESTS_ENGINE_ONNX_FIXTURE_H_
#define TESTS_ENGINE_ONNX_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/network/passes/passes.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/graph_builder.h"
#include "engine/onnx/onnx_model.h"
#include "engine/onnx/specialization.h"
#include "tests/engine/onnx/network_text.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/oracle/interpreter.h"

namespace tilewire::reader {

// The words that every test of this room uses.
using ::testing::AllOf;
using testing::Elements;
using testing::Float;
using ::testing::HasSubstr;
using testing::Int;
using testing::Interpret;
using testing::Ints;
using ::testing::Not;
using testing::OnnxBuilder;
using testing::String;

// In a folder of this process: another run may have left its files in the common one.
inline std::string TemporaryPath(const std::string& name) {
  static const std::string folder = [] {
    std::string made = ::testing::TempDir() + "/graph.XXXXXX";
    return std::string(mkdtemp(made.data()));
  }();
  return folder + "/" + name;
}

inline absl::StatusOr<std::shared_ptr<const OnnxModel>> OpenBytes(const std::string& bytes) {
  const std::string path = TemporaryPath("model.onnx");
  testing::WriteFile(path, bytes);
  return OnnxModel::Open(path);
}

inline absl::StatusOr<std::shared_ptr<const OnnxModel>> Open(const OnnxBuilder& builder) {
  return OpenBytes(builder.Serialize());
}

// The network as the operators give it, before any pass.
inline absl::StatusOr<network::Network> Built(const OnnxBuilder& builder,
                                              const std::vector<Dims>& dims) {
  const std::string bytes = builder.Serialize();
  MemorySource source(bytes);
  ABSL_ASSIGN_OR_RETURN(OnnxFile onnx_file, ReadOnnxFile(source, ""));
  ABSL_ASSIGN_OR_RETURN(const ModelGraph graph, BuildModelGraph(std::move(onnx_file)));
  ABSL_ASSIGN_OR_RETURN(std::vector<Operand> folded, FoldConstants(graph));
  return BuildNetwork(graph, std::move(folded), dims);
}

// Its text, or the message of the error.
inline std::string BuiltText(const OnnxBuilder& builder, const std::vector<Dims>& dims) {
  absl::StatusOr<network::Network> network = Built(builder, dims);
  return network.ok() ? NetworkToText(*network) : network.status().ToString();
}

// The outputs that the oracle computes of the network before any pass; none if it is refused.
inline std::vector<Elements> Computed(const OnnxBuilder& builder, const std::vector<Dims>& dims,
                                      const std::vector<Elements>& inputs) {
  absl::StatusOr<network::Network> network = Built(builder, dims);
  EXPECT_TRUE(network.ok()) << network.status();
  return network.ok() ? Interpret(*network, inputs) : std::vector<Elements>();
}

inline void ExpectNear(const Elements& computed, const Elements& expected,
                       double tolerance = 2e-5) {
  ASSERT_EQ(computed.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(computed[i], expected[i], tolerance) << "element " << i;
}

// The text after all passes.
inline std::string AfterPasses(const OnnxBuilder& model, const std::vector<Dims>& dims) {
  absl::StatusOr<network::Network> network = Built(model, dims);
  if (!network.ok()) return network.status().ToString();
  network::RunPasses(&*network);
  return NetworkToText(*network);
}

}  // namespace tilewire::reader

#endif  // TESTS_ENGINE_ONNX_FIXTURE_H_
