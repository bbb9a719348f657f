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
  const std::string trial = absl::StrCat(Followed(path), ".", getpid(), ".trial.new");
  const int descriptor = open(trial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", path, " cannot be written: ", std::strerror(errno)));
  }
  close(descriptor);
  unlink(trial.c_str());
  return absl::OkStatus();
}

absl::Status CheckWrittenFiles(const NamedFiles& written, const NamedFiles& read) {
  std::error_code error;
  for (const auto& [flag, file] : written) {
    for (const auto& [what, other] : read) {
      if (file.empty() || other.empty() || !std::filesystem::equivalent(file, other, error))
        continue;
      return absl::InvalidArgumentError(
          absl::StrCat(flag, "=", file, " is ", what, ", which stays as it is: name another file"));
    }
  }
  const auto normal = [&](const std::string& file) {
    return std::filesystem::absolute(file, error).lexically_normal();
  };
  for (size_t i = 0; i < written.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const auto& [first_flag, first] = written[k];
      const auto& [flag, file] = written[i];
      if (file.empty() || first.empty() || normal(file) != normal(first)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(first_flag, " and ", flag, " name the same file, ", first));
    }
  }
  return absl::OkStatus();
}

std::string Followed(const std::string& path) {
  std::error_code error;
  std::filesystem::path file = std::filesystem::canonical(path, error);
  if (!error) return file.string();
  if (std::filesystem::exists(path, error)) return path;  // /dev/stdout may be a pipe
  constexpr int kMostLinks = 40;                          // as many as the system follows
  file = path;
  for (int i = 0; i < kMostLinks; ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(file, error);
    if (error) return file.string();  // no link
    file = file.parent_path() / target;
  }
  return path;
}

}  // namespace tilewire::client
