// SPDX-License-Identifier: Apache-2.0
#include "client/training/held_out.h"

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/training/example_order.h"

namespace tilewire::client {
namespace {

template <typename T>
T ElementAt(const void* bytes, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(bytes) + index * sizeof(T), sizeof(T));
  return value;
}

absl::Status Unjudgeable(const OutputTensor& output, const BatchTensor& target) {
  return absl::InternalError(absl::StrCat("output ", output.index, " of shape ",
                                          DimsToString(output.dims), " has ", output.bytes.size(),
                                          " bytes, its target of shape ", DimsToString(target.dims),
                                          " has ", target.bytes.size()));
}

// The place with the largest score of `classes`, `stride` scores apart.
int64_t Largest(const std::byte* scores, int64_t first, int64_t classes, int64_t stride) {
  int64_t best = 0;
  float largest = ElementAt<float>(scores, first);
  for (int64_t c = 1; c < classes; ++c) {
    const float score = ElementAt<float>(scores, first + c * stride);
    if (!(score > largest)) continue;
    best = c;
    largest = score;
  }
  return best;
}

// Integers of `width` bytes: 4 or 8 where they can be judged.
struct Labels {
  const char* bytes;
  int64_t count, width;

  int64_t At(int64_t index) const {
    return width == 4 ? ElementAt<int32_t>(bytes, index) : ElementAt<int64_t>(bytes, index);
  }
};

Labels LabelsOf(const BatchTensor& target) {
  const int64_t count = ElementCount(target.dims).value_or(0);
  const auto bytes = static_cast<int64_t>(target.bytes.size());
  return {target.bytes.data(), count, count == 0 ? 0 : bytes / count};
}

// Scores [N, C, d...] against classes [N, d...], integers of 4 or 8 bytes.
absl::Status JudgeClasses(const OutputTensor& output, const BatchTensor& target,
                          std::optional<int64_t> ignored, HeldOut* sum) {
  const Labels labels = LabelsOf(target);
  const int64_t scores = ElementCount(output.dims).value_or(0);
  if (output.dims.size() < 2 || scores != labels.count * output.dims[1] ||
      (labels.width != 4 && labels.width != 8) || output.bytes.size() != scores * sizeof(float)) {
    return Unjudgeable(output, target);
  }
  const int64_t classes = output.dims[1], places = labels.count / output.dims[0];
  for (int64_t i = 0; i < labels.count; ++i) {
    const int64_t first = i / places * classes * places + i % places;
    const int64_t label = labels.At(i);
    if (label == ignored) continue;
    ++sum->judged;
    if (Largest(output.bytes.data(), first, classes, places) == label) ++sum->right;
  }
  return absl::OkStatus();
}

// Logits against targets in [0, 1], of one shape.
absl::Status JudgeSigns(const OutputTensor& output, const BatchTensor& target, HeldOut* sum) {
  const int64_t count = ElementCount(output.dims).value_or(0);
  if (output.bytes.size() != target.bytes.size() || output.bytes.size() != count * sizeof(float))
    return Unjudgeable(output, target);
  for (int64_t i = 0; i < count; ++i) {
    const bool said = ElementAt<float>(output.bytes.data(), i) > 0;
    if (said == (ElementAt<float>(target.bytes.data(), i) >= 0.5f)) ++sum->right;
  }
  sum->judged += count;
  return absl::OkStatus();
}

absl::Status JudgeBatch(const Evaluation& evaluation, const Batch& batch,
                        const JudgedOutput& judged, HeldOut* sum) {
  const bool has_classes = judged.loss == LossSpec::Kind::kSoftmaxCrossEntropy;
  if (!has_classes && judged.loss != LossSpec::Kind::kBinaryCrossEntropy) return absl::OkStatus();
  for (const OutputTensor& output : evaluation.outputs) {
    if (output.index != judged.index) continue;
    return has_classes ? JudgeClasses(output, batch.targets[0], judged.ignore_index, sum)
                       : JudgeSigns(output, batch.targets[0], sum);
  }
  return absl::InternalError(absl::StrCat("the evaluation has no output ", judged.index));
}

double WeightIn(const BatchTensor& targets, int64_t examples, LossSpec::Kind loss,
                std::optional<int64_t> ignored, absl::Span<const float> class_weights) {
  const bool has_weights = ignored.has_value() || !class_weights.empty();
  if (!has_weights || loss != LossSpec::Kind::kSoftmaxCrossEntropy)
    return static_cast<double>(examples);
  const Labels labels = LabelsOf(targets);
  const auto classes = static_cast<int64_t>(class_weights.size());
  double sum = 0;
  for (int64_t i = 0; i < labels.count; ++i) {
    const int64_t label = labels.At(i);
    if (label == ignored) continue;
    sum += label >= 0 && label < classes ? class_weights[label] : 1;
  }
  return sum;
}

// The mean of one loss over several batches.
struct MeanLoss {
  double sum = 0, weight = 0;

  // A batch in which nothing counts has no loss to add.
  void Add(double loss, double batch_weight) {
    if (batch_weight > 0) sum += loss * batch_weight;
    weight += batch_weight;
  }
};

void AddLosses(const Evaluation& evaluation, const Batch& batch, const JudgedOutput& judged,
               std::vector<MeanLoss>* means) {
  for (size_t i = 0; i < means->size(); ++i) {
    (*means)[i].Add(evaluation.losses[i],
                    WeightOf(batch.targets[i], batch.count, judged, /*loss=*/i));
  }
}

}  // namespace

double WeightOf(const BatchTensor& targets, int64_t examples, const JudgedOutput& judged,
                size_t loss) {
  if (loss > 0) {
    const LossSpec& other = judged.others[loss - 1];
    return WeightIn(targets, examples, other.kind, other.ignore_index, other.class_weights);
  }
  return WeightIn(targets, examples, judged.loss, judged.ignore_index, judged.class_weights);
}

absl::StatusOr<HeldOut> EvaluateHeldOut(const Trainer& trainer, const Dataset& dataset,
                                        absl::Span<const int64_t> examples, int64_t batch,
                                        const JudgedOutput& judged, const RunOptions& options) {
  HeldOut sum;
  std::vector<MeanLoss> means(judged.losses());
  for (const absl::Span<const int64_t> some : Batches(examples, batch)) {
    const Batch taken = dataset.Take(some);
    const InputTensor input = taken.input.View();
    const absl::StatusOr<Evaluation> evaluation =
        trainer.Evaluate({&input, 1}, taken.TargetViews(), options);
    if (!evaluation.ok()) return evaluation.status();
    if (evaluation->losses.size() != means.size()) {
      return absl::InternalError(absl::StrCat("the evaluation has ", evaluation->losses.size(),
                                              " losses, not ", means.size()));
    }
    AddLosses(*evaluation, taken, judged, &means);
    const absl::Status status = JudgeBatch(*evaluation, taken, judged, &sum);
    if (!status.ok()) return status;
  }
  for (const MeanLoss& mean : means) sum.loss += mean.sum / mean.weight;
  return sum;
}

}  // namespace tilewire::client
