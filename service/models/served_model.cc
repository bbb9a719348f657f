// SPDX-License-Identifier: Apache-2.0
#include "service/models/served_model.h"

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "service/wire/status_text.h"

namespace tilewire::service {

absl::string_view ModelStateName(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
    case ModelState::kArriving:
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
  return served.state == ModelState::kLoading || served.state == ModelState::kReady ||
         served.state == ModelState::kUnavailable;
}

std::vector<absl::string_view> LabelsOf(const ServedModel& served, int output) {
  const std::string& lines = served.output_labels[output];
  if (lines.empty()) return {};
  return absl::StrSplit(lines, '\n');
}

absl::Status Usable(const ServedModel& served) {
  switch (served.state) {
    case ModelState::kReady:
      return absl::OkStatus();
    case ModelState::kLoading:
      return absl::UnavailableError(
          absl::StrCat("model ", Quoted(served.name), " is still loading"));
    case ModelState::kArriving:
    case ModelState::kUnloading:
    case ModelState::kUnloaded:
      return absl::NotFoundError(absl::StrCat("model ", Quoted(served.name), " is not loaded"));
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
  if (served.state == ModelState::kArriving) return "it is tried out and loaded";
  if (!IsLive(served)) return served.state == ModelState::kUnloaded ? "unloaded" : "";
  if (served.is_loading_next) {
    return absl::StrCat(served.state == ModelState::kReady ? "what was loaded before serves"
                                                           : Usable(served).message(),
                        "; the files there now are tried out and loaded");
  }
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
