// SPDX-License-Identifier: Apache-2.0
#include "service/models/text_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "google/protobuf/wire_format_lite.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

constexpr uintmax_t kMaxTextBytes = 64 << 10;

}  // namespace

bool IsUtf8(const std::string& text) {
  using google::protobuf::internal::WireFormatLite;
  return WireFormatLite::VerifyUtf8String(text.data(), static_cast<int>(text.size()),
                                          WireFormatLite::PARSE, nullptr);
}

std::string ReadTextFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMaxTextBytes) {
    spdlog::warn("{}: not read, it is larger than {} bytes", path, kMaxTextBytes);
    return "";
  }
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  if (IsUtf8(text.str())) return text.str();
  spdlog::warn("{}: not read, it is not UTF-8", path);
  return "";
}

}  // namespace tilewire::service
