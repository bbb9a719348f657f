// SPDX-License-Identifier: Apache-2.0
#include "engine/base/utf8.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace tilewire {
namespace {

// Bytes after the first one of a character; -1: no character begins so.
int FollowingBytes(uint8_t first) {
  if (first < 0x80) return 0;
  if (first < 0xC2 || first > 0xF4) return -1;
  return first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
}

// Whether the second byte makes a character that could be shorter, half of a pair or too large.
bool IsForbiddenSecond(uint8_t first, uint8_t second) {
  return (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
         (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
}

// Bytes of the character at the beginning of text, which is not empty; 0: there is none.
size_t CharacterAt(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const int following = FollowingBytes(byte(0));
  if (following < 0 || text.size() <= static_cast<size_t>(following)) return 0;
  for (int i = 1; i <= following; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  if (following > 0 && IsForbiddenSecond(byte(0), byte(1))) return 0;
  return static_cast<size_t>(following) + 1;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = CharacterAt(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string Utf8Text(absl::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t bytes = CharacterAt(text);
    absl::StrAppend(&valid, bytes == 0 ? "?" : text.substr(0, bytes));
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return valid;
}

}  // namespace tilewire
