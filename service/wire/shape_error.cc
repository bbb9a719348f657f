// SPDX-License-Identifier: Apache-2.0
#include "service/wire/shape_error.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

// Whether shapes are said not to fit each other: other errors have nothing to do with batches.
bool SpeaksOfShapes(absl::string_view message) {
  return absl::StrContains(message, " fit") || absl::StrContains(message, "cannot view");
}

}  // namespace

bool LeavesBatchOpen(const Dims& declared) { return !declared.empty() && declared[0] < 0; }

absl::Status WithBatches(const absl::Status& error, const ModelSignature& signature,
                         const std::vector<InputTensor>& inputs) {
  if (!absl::IsInvalidArgument(error) || !SpeaksOfShapes(error.message())) return error;
  size_t first = inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!LeavesBatchOpen(signature.inputs[i].dims)) continue;
    if (first == inputs.size()) first = i;
    const int64_t batch = inputs[first].dims[0], other = inputs[i].dims[0];
    if (batch == other) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "inputs ", Quoted(signature.inputs[first].name), " and ", Quoted(signature.inputs[i].name),
        " have batches of ", batch, " and ", other, ": ", error.message()));
  }
  return error;
}

absl::Status CheckBatch(const ModelSignature& signature, const std::vector<InputTensor>& inputs,
                        int64_t most) {
  if (most == 0) return absl::OkStatus();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!LeavesBatchOpen(signature.inputs[i].dims) || inputs[i].dims[0] <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input ", Quoted(signature.inputs[i].name), ": a batch of ", inputs[i].dims[0],
                     " is larger than the model's max_batch_size, ", most));
  }
  return absl::OkStatus();
}

}  // namespace tilewire::service
