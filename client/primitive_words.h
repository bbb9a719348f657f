// SPDX-License-Identifier: Apache-2.0
//
// The words of a primitive that is described on a command line: what the operations of
// PrimitiveText share. Pure functions.
#ifndef CLIENT_PRIMITIVE_WORDS_H_
#define CLIENT_PRIMITIVE_WORDS_H_

#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/primitive_text.h"

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

// The primitive chooses a layout that was not named.
void LetChoose(v1::MemoryDesc* desc);

// The destination as given, or with these dims and type and a layout of the primitive's choice.
absl::Status FillDst(const PrimitiveText& text, const std::vector<int64_t>& dims, v1::DataType type,
                     v1::MemoryDesc* dst);

// text.algorithm is the cell; weights, and the bias if there is one, follow from it, from `src`
// [T,N,I], text.hidden and text.direction.
absl::Status FillRnn(const PrimitiveText& text, const v1::MemoryDesc& src, v1::Rnn* op);

}  // namespace tilewire::client

#endif  // CLIENT_PRIMITIVE_WORDS_H_
