// SPDX-License-Identifier: Apache-2.0
//
// A trainer of [N] numbers x for scores [N, 3], which notes what it is given. The score of class
// x % 3 is the largest. The loss of update u is 1 / u; that of an evaluation is the number of its
// examples, so that a mean over batches shows how it is weighted.
#ifndef TESTS_CLIENT_TRAINING_FAKE_TRAINER_H_
#define TESTS_CLIENT_TRAINING_FAKE_TRAINER_H_

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/trainer.h"

namespace tilewire::client {

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
std::vector<T> ElementsOf(const InputTensor& tensor) {
  std::string bytes;
  for (const absl::string_view piece : tensor.pieces) absl::StrAppend(&bytes, piece);
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
  return elements;
}

class FakeTrainer final : public Trainer {
 public:
  struct Given {
    Dims input_dims, target_dims;
    std::vector<float> inputs;
    std::vector<int64_t> targets;
  };

  std::vector<std::pair<int64_t, bool>> prepared;  // examples, and whether for Recalibrate(), too
  std::vector<ElementBounds> bounds;               // of what is prepared
  std::vector<Given> updates;
  std::vector<std::vector<float>> recalibrated;  // the inputs
  mutable std::vector<Given> evaluations;
  // Called in each update, which counts from 1, before it is made.
  std::function<absl::StatusOr<UpdateResult>(const UpdateResult& usual)> in_update =
      [](const UpdateResult& usual) { return usual; };
  std::function<absl::Status(int64_t examples)> in_preparation = [](int64_t) {
    return absl::OkStatus();
  };
  std::function<absl::Status()> in_evaluation = [] { return absl::OkStatus(); };
  // Each loss of an evaluation.
  std::function<std::vector<double>(absl::Span<const InputTensor> targets)> losses_of =
      [](absl::Span<const InputTensor> targets) {
        return std::vector<double>(targets.size(), static_cast<double>(targets.at(0).dims[0]));
      };

  std::function<absl::Status(const std::string& path)> in_writing = [](const std::string&) {
    return absl::OkStatus();
  };

  const ModelSignature& signature() const override { return signature_; }
  const std::vector<TensorSpec>& targets() const override { return targets_; }
  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  const std::vector<TrainingNote>& notes() const override { return notes_; }

  absl::StatusOr<std::vector<ElementBounds>> Prepare(absl::Span<const InputTensor> inputs,
                                                     absl::Span<const InputTensor>,
                                                     bool recalibrates,
                                                     const RunOptions&) override {
    prepared.emplace_back(inputs.at(0).dims[0], recalibrates);
    const absl::Status status = in_preparation(inputs[0].dims[0]);
    if (!status.ok()) return status;
    return bounds;
  }

  absl::StatusOr<UpdateResult> Update(absl::Span<const InputTensor> inputs,
                                      absl::Span<const InputTensor> targets,
                                      const RunOptions& options) override {
    const double number = static_cast<double>(updates.size() + 1);
    absl::StatusOr<UpdateResult> result = in_update(
        {.update = static_cast<int64_t>(number), .loss = 1 / number, .rate = 0.1 * number});
    if (absl::Status status = options.interrupted(); !status.ok()) return status;
    if (result.ok()) updates.push_back(GivenOf(inputs, targets));
    return result;
  }

  absl::StatusOr<Evaluation> Evaluate(absl::Span<const InputTensor> inputs,
                                      absl::Span<const InputTensor> targets,
                                      const RunOptions& options) const override {
    absl::Status status = in_evaluation();
    if (status.ok()) status = options.interrupted();
    if (!status.ok()) return status;
    evaluations.push_back(GivenOf(inputs, targets));
    const Given& given = evaluations.back();
    const int64_t count = given.input_dims[0];
    std::vector<float> scores(count * 3, 0);
    for (int64_t i = 0; i < count; ++i)
      scores[i * 3 + static_cast<int64_t>(given.inputs[i]) % 3] = 1;
    Evaluation evaluation{.loss = static_cast<double>(count)};
    evaluation.losses = losses_of(targets);
    evaluation.outputs.resize(1);
    evaluation.outputs[0].dims = {count, 3};
    evaluation.outputs[0].bytes = *AlignedBuffer::Allocate(scores.size() * sizeof(float));
    std::memcpy(evaluation.outputs[0].bytes.data(), scores.data(), scores.size() * sizeof(float));
    return evaluation;
  }

  absl::Status Recalibrate(absl::Span<const InputTensor> inputs, const RunOptions&) override {
    recalibrated.push_back(ElementsOf<float>(inputs.at(0)));
    return absl::OkStatus();
  }
  absl::Status WriteModel(const std::string& path) const override { return in_writing(path); }
  int64_t written_bytes() const override { return 0; }
  absl::Status CheckPlaces(const std::string&) const override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<float>> Parameter(const std::string& name) const override {
    return absl::NotFoundError(name);
  }

 private:
  static Given GivenOf(absl::Span<const InputTensor> inputs,
                       absl::Span<const InputTensor> targets) {
    return {inputs.at(0).dims, targets.at(0).dims, ElementsOf<float>(inputs[0]),
            ElementsOf<int64_t>(targets[0])};
  }

  ModelSignature signature_ = {{{.name = "x", .dims = {-1}}}, {{.name = "y", .dims = {-1, 3}}}};
  std::vector<TensorSpec> targets_ = {{.name = "y", .type = DataType::kS64, .dims = {-1}}};
  std::vector<ParameterSpec> parameters_ = {{.name = "w", .dims = {3}}};
  std::vector<TrainingNote> notes_;
};

}  // namespace tilewire::client

#endif  // TESTS_CLIENT_TRAINING_FAKE_TRAINER_H_
