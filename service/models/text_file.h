// SPDX-License-Identifier: Apache-2.0
//
// Text that lies beside a model: settings, and what travels to clients.
#ifndef SERVICE_MODELS_TEXT_FILE_H_
#define SERVICE_MODELS_TEXT_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace tilewire::service {

// The contents of a file; "" if there is none.
//   kOutOfRange  it is larger than 64 KB; the message does not name it
absl::StatusOr<std::string> TextOf(const std::string& path);

// The text of a file, such as labels.txt. Empty if there is none, and, with a line in the log, if
// it is larger than 64 KB or not UTF-8.
std::string ReadTextFile(const std::string& path);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_TEXT_FILE_H_
