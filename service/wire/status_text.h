// SPDX-License-Identifier: Apache-2.0
//
// Statuses on their way to a client. Pure functions.
#ifndef SERVICE_WIRE_STATUS_TEXT_H_
#define SERVICE_WIRE_STATUS_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace tilewire::service {

// The same code; the text is cut to less than 1 KB.
grpc::Status ToGrpcStatus(const absl::Status& status);

// A client's string for an error text: quoted, escaped, and cut to 64 bytes.
std::string Quoted(absl::string_view text);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_STATUS_TEXT_H_
