// SPDX-License-Identifier: Apache-2.0
//
// The fields of a descriptor beyond its tensors, in words, for verbose lines and errors: every
// field that TILEWIRE_FIELDS lists, so that a new primitive needs nothing of its own.
#ifndef ENGINE_PRIMITIVES_PROBLEM_TEXT_H_
#define ENGINE_PRIMITIVES_PROBLEM_TEXT_H_

#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/functions/function.h"
#include "engine/memory/index_run.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

namespace problem_text {

template <typename T>
std::string Word(const T& value) {
  if constexpr (requires { AlgorithmName(value); }) {
    return std::string(AlgorithmName(value));
  } else if constexpr (std::is_same_v<T, functions::Elementwise>) {
    return absl::StrCat(AlgorithmName(value.function), ":", value.alpha, ":", value.beta);
  } else if constexpr (std::is_same_v<T, IndexRun>) {
    return absl::StrCat(value.start, ":", value.step, ":", value.count);
  } else if constexpr (requires { VisitFields(value, [](absl::string_view, const auto&) {}); }) {
    std::string text;
    VisitFields(value, [&text](absl::string_view, const auto& field) {
      absl::StrAppend(&text, text.empty() ? "" : ":", Word(field));
    });
    return text;
  } else if constexpr (std::is_enum_v<T>) {  // without names
    return absl::StrCat(static_cast<int>(value));
  } else if constexpr (requires { value.begin()->begin(); }) {  // lists of lists
    return absl::StrJoin(
        value, ";", [](std::string* out, const auto& part) { absl::StrAppend(out, Word(part)); });
  } else if constexpr (requires { value.begin(); }) {
    return absl::StrJoin(
        value, "x", [](std::string* out, const auto& part) { absl::StrAppend(out, Word(part)); });
  } else {
    return absl::StrCat(value);
  }
}

}  // namespace problem_text

// "algorithm:max kernel:3x3 strides:2x2 padding_left:1x1 padding_right:1x1"
template <typename Desc>
std::string ProblemText(const Desc& desc) {
  std::string text;
  VisitFields(desc, [&text](absl::string_view name, const auto& value) {
    using Field = std::decay_t<decltype(value)>;
    if constexpr (!kIsTensor<Field> && !std::is_same_v<Field, PropKind>) {
      const bool is_function = std::is_same_v<Field, functions::Elementwise>;
      absl::StrAppend(&text, text.empty() ? "" : " ", is_function ? "algorithm" : name, ":",
                      problem_text::Word(value));
    }
  });
  return text;
}

// The propagation of a descriptor that has one; "" for the others.
template <typename Desc>
absl::string_view PropText(const Desc& desc) {
  if constexpr (requires { desc.prop_kind; }) return PropKindName(desc.prop_kind);
  return "";
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_PROBLEM_TEXT_H_
