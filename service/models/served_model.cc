// SPDX-License-Identifier: Apache-2.0
#include "service/models/served_model.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "service/wire/status_text.h"

namespace tilewire::service {

absl::string_view ModelStateName(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kReady:
      return "READY";
    case ModelState::kUnloading:
      return "UNLOADING";
    case ModelState::kUnloaded:
    case ModelState::kUnavailable:
      break;
  }
  return "UNAVAILABLE";
}

bool IsLive(const ServedModel& served) {
  return served.state != ModelState::kUnloading && served.state != ModelState::kUnloaded;
}

std::vector<absl::string_view> LabelsOf(const ServedModel& served, int output) {
  const auto has_lines = [](const std::string& lines) { return !lines.empty(); };
  if (absl::c_any_of(served.output_labels, has_lines)) {
    const std::string& lines = served.output_labels[output];
    return lines.empty() ? std::vector<absl::string_view>() : absl::StrSplit(lines, '\n');
  }
  if (served.labels.empty()) return {};
  const std::vector<TensorSpec>& outputs = served.model->signature().outputs;
  const auto is_row_of_classes = [](const TensorSpec& spec) { return spec.dims.size() == 2; };
  const bool is_only_one = absl::c_count_if(outputs, is_row_of_classes) == 1;
  if (!is_only_one || !is_row_of_classes(outputs[output])) return {};
  return absl::StrSplit(served.labels, '\n');
}

absl::Status Usable(const ServedModel& served) {
  switch (served.state) {
    case ModelState::kReady:
      return absl::OkStatus();
    case ModelState::kLoading:
      return absl::UnavailableError(
          absl::StrCat("model ", Quoted(served.name), " is still loading"));
    case ModelState::kUnloading:
    case ModelState::kUnloaded:
      return absl::NotFoundError(absl::StrCat("model ", Quoted(served.name), " is unloaded"));
    case ModelState::kUnavailable:
      break;
  }
  if (absl::IsUnavailable(served.load_status)) {
    return absl::UnavailableError(
        absl::StrCat("model ", Quoted(served.name), ": ", served.load_status.message()));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "model ", Quoted(served.name), " failed to load: ", served.load_status.message()));
}

std::string ReasonOf(const ServedModel& served) {
  if (!IsLive(served)) return served.state == ModelState::kUnloaded ? "unloaded" : "";
  if (served.state == ModelState::kReady && !served.load_status.ok()) {
    return absl::StrCat("what was loaded before serves; the files there now failed to load: ",
                        served.load_status.message());
  }
  return std::string(Usable(served).message());
}

uint64_t CostKey(const ServedModel& served, absl::Span<const InputTensor> inputs) {
  return absl::HashOf(served.name, served.version, served.model->PlanHash(inputs));
}

}  // namespace tilewire::service
