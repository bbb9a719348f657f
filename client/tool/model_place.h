// SPDX-License-Identifier: Apache-2.0
//
// The place of a model's file that a long command writes at its end.
#ifndef CLIENT_TOOL_MODEL_PLACE_H_
#define CLIENT_TOOL_MODEL_PLACE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace tilewire::client {

// Tries whether the file can be made, so that a long command does not end without one.
//   kInvalidArgument  no name, not a regular file, or what the system says; with `flag`
absl::Status CheckModelPlace(const std::string& flag, const std::string& path);

// Files with the names that messages give them; an empty path is passed over.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;

// Files that are read stay as they are, also where they have another name, and no file is written
// twice.
//   kInvalidArgument  it is so; `written` are flags, in the order of messages
absl::Status CheckWrittenFiles(const NamedFiles& written, const NamedFiles& read);

// The file itself where `path` is a symbolic link, which stays one, also where that file is not
// there yet. Links that never end, or to a pipe of this process: `path`.
std::string Followed(const std::string& path);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_MODEL_PLACE_H_
