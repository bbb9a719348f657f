// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/training_refusal.h"

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace tilewire {
namespace {

constexpr char kRefusalPayload[] = "tilewire/training_refusal";

struct RefusalWord {
  TrainingRefusal refusal;
  absl::string_view text;
};
constexpr RefusalWord kRefusalWords[] = {
    {TrainingRefusal::kOther, "other"},
    {TrainingRefusal::kNoVariance, "no_variance"},
    {TrainingRefusal::kNoStatistics, "no_statistics"},
};

}  // namespace

absl::Status WithRefusal(absl::Status error, TrainingRefusal refusal) {
  for (const RefusalWord& word : kRefusalWords) {
    if (word.refusal == refusal) error.SetPayload(kRefusalPayload, absl::Cord(word.text));
  }
  return error;
}

TrainingRefusal RefusalOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRefusalPayload);
  for (const RefusalWord& word : kRefusalWords) {
    if (payload && *payload == word.text) return word.refusal;
  }
  return TrainingRefusal::kOther;
}

}  // namespace tilewire
