// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/networks/network_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/network/network_check.h"
#include "engine/network/passes/passes.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/file/onnx_file.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/graph_builder.h"
#include "engine/onnx/specialization.h"
#include "gtest/gtest.h"
#include "tests/fuzz/networks/elements.h"
#include "tests/fuzz/networks/expectation.h"
#include "tests/support/oracle/interpreter.h"
#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

using network::Network;

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsUnimplemented(status) ||
         absl::IsResourceExhausted(status) || absl::IsOutOfRange(status);
}

absl::StatusOr<Network> BuiltNetwork(const onnx::ModelProto& model,
                                     const std::vector<Made>& inputs) {
  const std::string bytes = model.SerializeAsString();
  ABSL_ASSIGN_OR_RETURN(reader::OnnxFile file,
                        reader::ReadOnnxFile(reader::MemorySource(bytes), /*model_path=*/""));
  ABSL_ASSIGN_OR_RETURN(const reader::ModelGraph graph, reader::BuildModelGraph(std::move(file)));
  ABSL_ASSIGN_OR_RETURN(std::vector<reader::Operand> folded, reader::FoldConstants(graph));
  std::vector<Dims> dims;
  for (const Made& input : inputs) dims.push_back(input.dims);
  return reader::BuildNetwork(graph, std::move(folded), dims);
}

DataType TypeOf(const Made& made) {
  return reader::TypeOfElements(made.type).value_or(DataType::kF32);
}

// Every operation keeps its contract, whichever passes have run.
void RunPassByPass(Network* network) {
  for (const network::Pass& pass : network::PassTable()) {
    pass.run(network);
    const absl::Status status = network::CheckNetwork(*network);
    ASSERT_TRUE(status.ok()) << "after " << pass.name << ": " << status;
  }
}

void ExpectNear(const Expectation& expectation, const std::vector<Elements>& got,
                const char* what) {
  for (size_t o = 0; o < got.size(); ++o)
    EXPECT_EQ(expectation.Difference(o, got[o]), "") << what << ", output " << o;
}

}  // namespace

NetworkRunner::NetworkRunner() : path_(::testing::TempDir() + "/network.onnx") {
  for (const cpu::Isa isa : {cpu::BestIsa(), cpu::Isa::kAvx2, cpu::Isa::kBaseline}) {
    if (!cpu::Supports(isa)) continue;
    EngineOptions options;
    options.max_isa = isa;
    options.threads = options.threads_per_request = 1;
    options.primitive_cache_bytes = 4 << 20;
    engines_.push_back(std::make_shared<EngineShared>(options));
  }
}

NetworkRunner::Answer NetworkRunner::Serve(const onnx::ModelProto& model,
                                           const std::vector<Made>& inputs,
                                           const std::vector<Elements>& elements, Random& random) {
  WriteFile(path_, model.SerializeAsString());
  const auto source = reader::OnnxModel::Open(path_);
  if (!source.ok()) {
    EXPECT_TRUE(IsRefusal(source.status())) << source.status();
    return {"refused when it is opened", {}};
  }
  const auto& engine = engines_[Chance(random, 60) ? 0 : random.Integer(0, engines_.size() - 1)];
  LoadOptions options;
  options.serial = true;
  const auto loaded = LoadedModel::Create(*source, engine, options);
  if (!loaded.ok()) {
    EXPECT_TRUE(IsRefusal(loaded.status())) << loaded.status();
    return {"refused when it is planned", {}};
  }
  std::vector<std::string> bytes;
  std::vector<InputTensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i)
    bytes.push_back(BytesOf(TypeOf(inputs[i]), elements[i]));
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back({inputs[i].dims, Layout::kNchw, {bytes[i]}});
  const auto outputs = (*loaded)->Run(tensors, {}, {});
  if (!outputs.ok()) {
    EXPECT_TRUE(IsRefusal(outputs.status())) << outputs.status();
    return {"refused when it runs", {}};
  }
  Answer answer = {"runs", {}};
  for (const OutputTensor& output : *outputs) {
    const TensorSpec& spec = (*loaded)->signature().outputs[output.index];
    answer.outputs.push_back(ElementsOf(
        spec.type, {reinterpret_cast<const char*>(output.bytes.data()), output.bytes.size()}));
  }
  return answer;
}

std::string NetworkRunner::Run(const onnx::ModelProto& model, const std::vector<Made>& inputs,
                               Random& random) {
  std::vector<Elements> elements;
  for (const Made& input : inputs)
    elements.push_back(RandomElements(random, TypeOf(input), ElementCount(input.dims).value_or(0)));
  absl::StatusOr<Network> network = BuiltNetwork(model, inputs);
  if (!network.ok()) {
    EXPECT_TRUE(IsRefusal(network.status())) << network.status();
  }
  const Network before = network.ok() ? *network : Network();
  if (network.ok()) RunPassByPass(&*network);
  if (::testing::Test::HasFatalFailure()) return "breaks a contract";
  const Answer answer = Serve(model, inputs, elements, random);
  if (answer.outputs.empty() || !network.ok()) return answer.became;
  const Expectation expectation(before, elements, random);
  if (!expectation.is_comparable()) return "runs, and overflows";
  ExpectNear(expectation, Interpret(*network, elements), "the oracle after the passes");
  ExpectNear(expectation, answer.outputs, "the engine");
  return "is compared";
}

}  // namespace tilewire::testing
