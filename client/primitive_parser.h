// SPDX-License-Identifier: Apache-2.0
//
// From a primitive described in words to the wire's descriptor. Pure functions; thread-safe.
#ifndef CLIENT_PRIMITIVE_PARSER_H_
#define CLIENT_PRIMITIVE_PARSER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/primitive_text.h"

namespace tilewire::client {

// "convolution", ...: the words for PrimitiveText::kind.
std::vector<std::string> PrimitiveKinds();

// kInvalidArgument  says which word, and what is allowed
absl::StatusOr<v1::PrimitiveDesc> ParsePrimitive(const PrimitiveText& text);

}  // namespace tilewire::client

#endif  // CLIENT_PRIMITIVE_PARSER_H_
