// SPDX-License-Identifier: Apache-2.0
#include "service/models/text_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "engine/base/utf8.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

constexpr uintmax_t kMaxTextBytes = 64 << 10;

}  // namespace

absl::StatusOr<std::string> TextOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMaxTextBytes) {
    return absl::OutOfRangeError(absl::StrCat("it is larger than ", kMaxTextBytes, " bytes"));
  }
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string ReadTextFile(const std::string& path) {
  const absl::StatusOr<std::string> text = TextOf(path);
  if (text.ok() && IsUtf8(*text)) return *text;
  spdlog::warn("{}: not read, {}", path,
               text.ok() ? "it is not UTF-8" : std::string(text.status().message()));
  return "";
}

}  // namespace tilewire::service
