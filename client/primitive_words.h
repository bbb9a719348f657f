// SPDX-License-Identifier: Apache-2.0
//
// Words for the numbers of generated enumerations, and the error that names a wrong word. Pure
// functions; thread-safe.
#ifndef CLIENT_PRIMITIVE_WORDS_H_
#define CLIENT_PRIMITIVE_WORDS_H_

#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/generated_enum_reflection.h"

namespace tilewire::client {

inline absl::Status Invalid(absl::string_view what, absl::string_view text,
                            absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(what, " '", text, "' is not ", allowed));
}

// The words for a generated enum: of the names' lower-case rests, all that name something.
template <typename Enum>
std::vector<std::string> EnumWords(const char* prefix) {
  const auto* values = google::protobuf::GetEnumDescriptor<Enum>();
  std::vector<std::string> words;
  for (int i = 0; i < values->value_count(); ++i) {
    const std::string word =
        absl::AsciiStrToLower(values->value(i)->name().substr(std::strlen(prefix)));
    if (word != "undefined") words.push_back(word);
  }
  return words;
}

// A number of a generated enum by its name's lower-case rest: "relu" for ELTWISE_RELU.
template <typename Enum>
absl::StatusOr<Enum> ParseEnum(absl::string_view what, const char* prefix,
                               const std::string& text) {
  const auto* values = google::protobuf::GetEnumDescriptor<Enum>();
  if (const auto* value =
          values->FindValueByName(absl::StrCat(prefix, absl::AsciiStrToUpper(text)))) {
    return static_cast<Enum>(value->number());
  }
  return Invalid(what, text, absl::StrCat("one of ", absl::StrJoin(EnumWords<Enum>(prefix), ", ")));
}

}  // namespace tilewire::client

#endif  // CLIENT_PRIMITIVE_WORDS_H_
