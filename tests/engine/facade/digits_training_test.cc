// SPDX-License-Identifier: Apache-2.0
//
// The built-in model, from random weights on, against torch 1.13 in double: residual blocks,
// groups, shuffles, depthwise convolutions, three poolings and batch norms.
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/engine/facade/trained_model.h"

namespace tilewire::testing {
namespace {

constexpr char kFolder[] = "deploy/models/digits/";
constexpr int64_t kBatch = 48, kBytes = 3 * 24 * 20;

std::string ReadAll(const std::string& name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Numbers in [-bound, bound).
std::string Uniform(int64_t count, float bound, uint32_t seed) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    numbers.push_back((static_cast<float>(seed >> 8) / 8388608.0f - 1) * bound);
  }
  return Bytes(numbers);
}

// The model as before training: weights are random, normalizations do nothing.
std::string Untrained() {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(ReadAll("1/model.onnx")));
  std::set<std::string> ones;
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (node.op_type() != "BatchNormalization") continue;
    ones.insert(node.input(1));
    ones.insert(node.input(4));
  }
  uint32_t seed = 1;
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.data_type() != onnx::TensorProto::FLOAT) continue;
    int64_t count = 1;
    for (int64_t dim : tensor.dims()) count *= dim;
    const bool is_one = ones.contains(tensor.name());
    std::string data = Bytes(std::vector<float>(count, is_one ? 1.0f : 0.0f));
    if (tensor.dims_size() > 1) {
      const auto inputs = static_cast<float>(count / tensor.dims(0));
      data = Uniform(count, std::sqrt(3 / inputs), seed++);
    }
    tensor.clear_float_data();
    tensor.set_raw_data(data);
  }
  return model.SerializeAsString();
}

struct Pictures {
  std::string images, labels;

  static Pictures Read(int64_t first, int64_t count) {
    static const std::string* const bytes = new std::string(ReadAll("heldout/images.u8"));
    static const std::string* const right = new std::string(ReadAll("heldout/labels.u8"));
    std::vector<float> images;
    std::vector<int64_t> labels;
    for (int64_t i = first; i < first + count; ++i) {
      for (int64_t k = 0; k < kBytes; ++k)
        images.push_back(static_cast<float>(static_cast<uint8_t>((*bytes)[i * kBytes + k])) / 255);
      labels.push_back((*right)[i]);
    }
    return {Bytes(images), Bytes(labels)};
  }
  std::vector<InputTensor> inputs() const {
    return {{{static_cast<int64_t>(labels.size()) / 8, 3, 24, 20}, Layout::kNchw, {images}}};
  }
  std::vector<InputTensor> targets() const {
    return {{{static_cast<int64_t>(labels.size()) / 8}, Layout::kNchw, {labels}}};
  }
};

TEST(DigitsTrainingTest, LossesOfUpdatesAndOfAnEvaluationAreTorchs) {
  const std::string path = ::testing::TempDir() + "/untrained.onnx";
  WriteFile(path, Untrained());
  TrainingSpec spec = CrossEntropy(0.005);
  spec.losses[0].output = "logits";
  spec.optimizer = {.momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
  spec.schedule.kind = ScheduleSpec::Kind::kCosine;
  spec.schedule.updates = 72;
  ASSERT_OK_AND_ASSIGN(auto trainer, CreateTrainer(&EngineOfThreads(2), path, spec));
  // In f32 torch itself is off by up to 2.3e-6.
  constexpr double kTolerance = 2e-5;
  int64_t begin = 0;
  for (double loss : {2.385006725, 2.388537859, 2.279052412, 2.535184535, 2.357992530}) {
    const Pictures batch = Pictures::Read(begin, kBatch);
    ASSERT_OK_AND_ASSIGN(const UpdateResult result,
                         trainer->Update(batch.inputs(), batch.targets(), {}));
    EXPECT_NEAR(result.loss, loss, kTolerance) << "update " << result.update;
    begin += kBatch;
  }
  const Pictures others = Pictures::Read(288, 72);
  ASSERT_OK_AND_ASSIGN(const Evaluation evaluation,
                       trainer->Evaluate(others.inputs(), others.targets(), {}));
  EXPECT_NEAR(evaluation.loss, 2.334981181, kTolerance);
}

}  // namespace
}  // namespace tilewire::testing
