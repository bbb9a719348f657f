// SPDX-License-Identifier: Apache-2.0
#include "client/tool/model_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tilewire::client {

absl::Status CheckModelPlace(const std::string& flag, const std::string& path) {
  if (path.empty())
    return absl::InvalidArgumentError(absl::StrCat(flag, ": a file's name is required"));
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", path, " is not a regular file, and would be replaced by one"));
  }
  // A name as long as that of the file that is written before it gets its own.
  const std::string trial = absl::StrCat(path, ".", getpid(), ".trial.new");
  const int descriptor = open(trial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", path, " cannot be written: ", std::strerror(errno)));
  }
  close(descriptor);
  unlink(trial.c_str());
  return absl::OkStatus();
}

std::string Followed(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  return error ? path : file.string();
}

}  // namespace tilewire::client
