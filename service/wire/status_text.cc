// SPDX-License-Identifier: Apache-2.0
#include "service/wire/status_text.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tilewire::service {
namespace {

constexpr size_t kMaxErrorBytes = 1000;
constexpr size_t kMaxQuotedBytes = 64;

// The longest prefix of at most `size` bytes that does not cut a UTF-8 sequence.
absl::string_view Prefix(absl::string_view text, size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string text(Prefix(status.message(), kMaxErrorBytes));
  if (text.size() < status.message().size()) text += "...";
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), text);
}

std::string Quoted(absl::string_view text) {
  const absl::string_view shown = Prefix(text, kMaxQuotedBytes);
  return absl::StrCat("'", absl::Utf8SafeCEscape(shown), shown.size() < text.size() ? "..." : "",
                      "'");
}

}  // namespace tilewire::service
