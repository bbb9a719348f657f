// SPDX-License-Identifier: Apache-2.0
#include "service/wire/request_parameters.h"

#include <iterator>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/wire/edit_distance.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

constexpr unsigned kRequest = 1, kInput = 2, kOutput = 4;

constexpr char kNoSequences[] =
    "sequences are not supported: every request stands alone; leave it out";
constexpr char kNoSharedMemory[] = "shared memory is not supported; send the tensor's bytes";

struct Known {
  absl::string_view name;
  unsigned places;                // where it belongs
  const char* refusal = nullptr;  // of what is not served
};
constexpr Known kKnown[] = {
    {"timeout", kRequest},
    {"priority", kRequest},
    {"timing", kRequest},
    {"layout", kInput | kOutput},
    {"classification", kOutput},
    {"sequence_id", kRequest, kNoSequences},
    {"sequence_start", kRequest, kNoSequences},
    {"sequence_end", kRequest, kNoSequences},
    {"shared_memory_region", kInput | kOutput, kNoSharedMemory},
    {"shared_memory_byte_size", kInput | kOutput, kNoSharedMemory},
    {"shared_memory_offset", kInput | kOutput, kNoSharedMemory},
};

unsigned PlaceOf(ParametersOf of) {
  switch (of) {
    case ParametersOf::kRequest:
      return kRequest;
    case ParametersOf::kInput:
      return kInput;
    case ParametersOf::kOutput:
      break;
  }
  return kOutput;
}

absl::string_view PlaceName(unsigned places) {
  switch (places) {
    case kRequest:
      return "the request";
    case kInput:
      return "an input";
    case kOutput:
      return "a requested output";
    default:
      return "an input or of a requested output";
  }
}

// "; an input takes 'layout'".
std::string Allowed(unsigned place) {
  std::string names;
  for (const Known& known : kKnown) {
    if (known.refusal != nullptr || (known.places & place) == 0) continue;
    absl::StrAppend(&names, names.empty() ? "'" : ", '", known.name, "'");
  }
  return absl::StrCat("; ", PlaceName(place), " takes ", names);
}

// Another case, a wrong letter or two, or a unit: "Timeout", "prioritty", "layuot", "timeout_ms".
bool IsNearly(absl::string_view name, absl::string_view known) {
  const size_t most = known.size() > 6 ? 2 : 1;
  const bool has_unit = name.size() > known.size() && name[known.size()] == '_';
  if (has_unit && name.size() <= 2 * known.size())
    return absl::EqualsIgnoreCase(name.substr(0, known.size()), known);
  if (name.size() > known.size() + most || name.size() + most < known.size()) return false;
  return EditDistance(absl::AsciiStrToLower(name), known) <= static_cast<int>(most);
}

absl::Status CheckName(absl::string_view name, unsigned place) {
  const auto* exact =
      absl::c_find_if(kKnown, [name](const Known& one) { return one.name == name; });
  if (exact != std::end(kKnown)) {
    if (exact->refusal != nullptr) return InvalidParameter(name, exact->refusal);
    if ((exact->places & place) != 0) return absl::OkStatus();
    return InvalidParameter(
        name, absl::StrCat("it is a parameter of ", PlaceName(exact->places), Allowed(place)));
  }
  for (const Known& known : kKnown) {
    if (!IsNearly(name, known.name)) continue;
    const std::string meant = absl::StrCat("unknown; is '", known.name, "' meant?");
    const bool belongs = (known.places & place) != 0;
    if (known.refusal != nullptr)
      return InvalidParameter(name, absl::StrCat(meant, " ", known.refusal));
    return InvalidParameter(name,
                            absl::StrCat(meant, belongs ? "" : " It is a parameter of ",
                                         belongs ? "" : PlaceName(known.places), Allowed(place)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InvalidParameter(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("parameter ", Quoted(name), ": ", why));
}

absl::Status CheckNames(const Parameters& parameters, ParametersOf of) {
  for (const auto& [name, value] : parameters) {
    ABSL_RETURN_IF_ERROR(CheckName(name, PlaceOf(of)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> IntegerParameter(const Parameters& parameters,
                                                        const char* name, int64_t most) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::optional<int64_t>();
  const inference::InferParameter& value = found->second;
  int64_t number = -1;
  if (value.parameter_choice_case() == inference::InferParameter::kInt64Param) {
    number = value.int64_param();
  } else if (value.parameter_choice_case() == inference::InferParameter::kUint64Param) {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    number = value.uint64_param() > kMost ? -1 : static_cast<int64_t>(value.uint64_param());
  }
  if (number >= 0 && number <= most) return std::optional<int64_t>(number);
  return InvalidParameter(name, absl::StrCat("it is not an integer from 0 to ", most));
}

absl::StatusOr<bool> BoolParameter(const Parameters& parameters, const char* name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return false;
  if (found->second.parameter_choice_case() == inference::InferParameter::kBoolParam)
    return found->second.bool_param();
  return InvalidParameter(name, "it is not true or false");
}

}  // namespace tilewire::service
