// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a ModelInferRequest and of its tensors. The protocol lets clients send names
// that a server does not know, and such names are ignored; but not where that would give another
// answer than the client expects. Pure functions.
#ifndef SERVICE_WIRE_REQUEST_PARAMETERS_H_
#define SERVICE_WIRE_REQUEST_PARAMETERS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "protos/open_inference.pb.h"

namespace tilewire::service {

using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

enum class ParametersOf { kRequest, kInput, kOutput };

// kInvalidArgument  a parameter that changes the answer and is not served, one that belongs
//                   elsewhere, or a name that is nearly one of these or of those that are served:
//                   the message names what was meant and what is allowed
absl::Status CheckNames(const Parameters& parameters, ParametersOf of);

// kInvalidArgument  "parameter 'layout': ...", with the reason
absl::Status InvalidParameter(absl::string_view name, absl::string_view why);

// The value of an integer parameter; nothing if it is absent.
//   kInvalidArgument  it is not an integer from 0 to `most`
absl::StatusOr<std::optional<int64_t>> IntegerParameter(const Parameters& parameters,
                                                        const char* name, int64_t most);

// The value of a parameter that is true or false; false if it is absent.
//   kInvalidArgument  it is neither
absl::StatusOr<bool> BoolParameter(const Parameters& parameters, const char* name);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_REQUEST_PARAMETERS_H_
