// SPDX-License-Identifier: Apache-2.0
//
// UTF-8, as RFC 3629 defines it. What travels in a message's strings must be UTF-8, or no client
// can parse the message. Pure functions.
#ifndef ENGINE_BASE_UTF8_H_
#define ENGINE_BASE_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tilewire {

bool IsUtf8(absl::string_view text);

// The text with '?' for each byte that is not part of a character.
std::string Utf8Text(absl::string_view text);

}  // namespace tilewire

#endif  // ENGINE_BASE_UTF8_H_
