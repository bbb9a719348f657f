// SPDX-License-Identifier: Apache-2.0
#include "service/wire/request_parameters.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "service/wire/edit_distance.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

struct Refused {
  absl::string_view name, why;
};
constexpr char kNoSequences[] =
    "sequences are not supported: every request stands alone; leave it out";
constexpr char kNoSharedMemory[] = "shared memory is not supported; send the tensor's bytes";
constexpr char kOfTensors[] = "it is a parameter of an input or of a requested output";
constexpr char kOfRequests[] = "it is a parameter of the request";
constexpr Refused kRefusedOfRequests[] = {
    {"sequence_id", kNoSequences},
    {"sequence_start", kNoSequences},
    {"sequence_end", kNoSequences},
    {"layout", kOfTensors},
};
constexpr Refused kRefusedOfTensors[] = {
    {"classification", "classification is not supported; ask for the scores"},
    {"shared_memory_region", kNoSharedMemory},
    {"shared_memory_byte_size", kNoSharedMemory},
    {"shared_memory_offset", kNoSharedMemory},
    {"timeout", kOfRequests},
    {"priority", kOfRequests},
    {"timing", kOfRequests},
};
constexpr absl::string_view kServedOfRequests[] = {"timeout", "priority", "timing"};
constexpr absl::string_view kServedOfTensors[] = {"layout"};

absl::Status InvalidParameter(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("parameter ", Quoted(name), ": ", why));
}

// Another case, a wrong letter or two, or a unit: "Timeout", "prioritty", "timeout_ms".
bool IsNearly(absl::string_view name, absl::string_view served) {
  if (name.size() > 2 * served.size()) return false;
  const std::string lower = absl::AsciiStrToLower(name);
  if (absl::StartsWith(lower, absl::StrCat(served, "_"))) return true;
  return EditDistance(lower, served) <= (served.size() > 6 ? 2 : 1);
}

}  // namespace

absl::Status CheckNames(const Parameters& parameters, ParametersOf of) {
  if (parameters.empty()) return absl::OkStatus();
  using Names = absl::Span<const absl::string_view>;
  using Refusals = absl::Span<const Refused>;
  const bool request = of == ParametersOf::kRequest;
  const Names served = request ? Names(kServedOfRequests) : Names(kServedOfTensors);
  for (const Refused& one : request ? Refusals(kRefusedOfRequests) : Refusals(kRefusedOfTensors)) {
    if (parameters.contains(std::string(one.name))) return InvalidParameter(one.name, one.why);
  }
  for (const auto& [name, value] : parameters) {
    if (absl::c_linear_search(served, name)) continue;
    for (absl::string_view known : served) {
      if (IsNearly(name, known))
        return InvalidParameter(name, absl::StrCat("unknown; is '", known, "' meant?"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> IntegerParameter(const Parameters& parameters,
                                                        const char* name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::optional<int64_t>();
  const inference::InferParameter& value = found->second;
  if (value.parameter_choice_case() == inference::InferParameter::kUint64Param &&
      value.uint64_param() <= std::numeric_limits<int64_t>::max()) {
    return std::optional<int64_t>(value.uint64_param());
  }
  if (value.parameter_choice_case() == inference::InferParameter::kInt64Param &&
      value.int64_param() >= 0) {
    return std::optional<int64_t>(value.int64_param());
  }
  return InvalidParameter(name, "it is not an integer from 0");
}

absl::StatusOr<bool> BoolParameter(const Parameters& parameters, const char* name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return false;
  if (found->second.parameter_choice_case() == inference::InferParameter::kBoolParam)
    return found->second.bool_param();
  return InvalidParameter(name, "it is not true or false");
}

}  // namespace tilewire::service
