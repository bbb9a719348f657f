// SPDX-License-Identifier: Apache-2.0
//
// The fields of a descriptor, listed once. In the namespace of the descriptor,
//
//   TILEWIRE_FIELDS(LrnDesc, prop_kind, algorithm, src, dst, local_size, alpha, beta, k);
//
// defines VisitFields(desc, visit), which calls visit(name, value) per field in this order. The
// cache's key, the problem's text and the list of tensors follow from it. A field that is missing
// from the list does not compile, so that none is forgotten in a key. Thread-safe.
#ifndef ENGINE_PRIMITIVES_FIELDS_H_
#define ENGINE_PRIMITIVES_FIELDS_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/functions/function.h"
#include "engine/memory/key_bytes.h"
#include "engine/memory/memory_desc.h"

// TILEWIRE_FOR_EACH(F, a, b, c) is F(a) F(b) F(c), for up to 64 arguments.
#define TILEWIRE_PARENTHESES ()
#define TILEWIRE_EXPAND(...) \
  TILEWIRE_EXPAND3(TILEWIRE_EXPAND3(TILEWIRE_EXPAND3(TILEWIRE_EXPAND3(__VA_ARGS__))))
#define TILEWIRE_EXPAND3(...) \
  TILEWIRE_EXPAND2(TILEWIRE_EXPAND2(TILEWIRE_EXPAND2(TILEWIRE_EXPAND2(__VA_ARGS__))))
#define TILEWIRE_EXPAND2(...) \
  TILEWIRE_EXPAND1(TILEWIRE_EXPAND1(TILEWIRE_EXPAND1(TILEWIRE_EXPAND1(__VA_ARGS__))))
#define TILEWIRE_EXPAND1(...) __VA_ARGS__
#define TILEWIRE_FOR_EACH(F, ...) \
  __VA_OPT__(TILEWIRE_EXPAND(TILEWIRE_FOR_EACH_STEP(F, __VA_ARGS__)))
#define TILEWIRE_FOR_EACH_STEP(F, first, ...) \
  F(first) __VA_OPT__(TILEWIRE_FOR_EACH_AGAIN TILEWIRE_PARENTHESES(F, __VA_ARGS__))
#define TILEWIRE_FOR_EACH_AGAIN() TILEWIRE_FOR_EACH_STEP

#define TILEWIRE_VISIT_FIELD(field) visit(absl::string_view(#field), desc.field);

// The structured binding names as many fields as there are.
#define TILEWIRE_FIELDS(Desc, ...)                         \
  template <typename Visit>                                \
  void VisitFields(const Desc& desc, const Visit& visit) { \
    [[maybe_unused]] const auto& [__VA_ARGS__] = desc;     \
    TILEWIRE_FOR_EACH(TILEWIRE_VISIT_FIELD, __VA_ARGS__)   \
  }                                                        \
  static_assert(std::is_aggregate_v<Desc>)

namespace tilewire {

// A value's bytes. Equal values, and no others, give equal bytes: what varies in length says so.
template <typename T>
void AppendField(const T& value, std::string* key) {
  if constexpr (requires { value.AppendKey(key); }) {
    value.AppendKey(key);
  } else if constexpr (requires { VisitFields(value, [](absl::string_view, const auto&) {}); }) {
    VisitFields(value, [key](absl::string_view, const auto& field) { AppendField(field, key); });
  } else if constexpr (requires { value.begin(); }) {
    AppendBytes(static_cast<int64_t>(value.size()), key);
    for (const auto& element : value) AppendField(element, key);
  } else {
    static_assert(
        std::is_arithmetic_v<T> || std::is_enum_v<T> || std::has_unique_object_representations_v<T>,
        "bytes between the fields would be in the key");
    AppendBytes(value, key);
  }
}

// The bytes of a descriptor, for a key.
template <typename Desc>
void AppendKey(const Desc& desc, std::string* key) {
  VisitFields(desc, [key](absl::string_view, const auto& field) { AppendField(field, key); });
}

template <typename T>
inline constexpr bool kIsTensor =
    std::is_same_v<T, MemoryDesc> || std::is_same_v<T, std::vector<MemoryDesc>>;

// Calls visit(tensor) per tensor of a descriptor, absent ones included.
template <typename Desc, typename Visit>
void VisitTensors(const Desc& desc, const Visit& visit) {
  VisitFields(desc, [&visit](absl::string_view, const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, MemoryDesc>) {
      visit(field);
    } else if constexpr (kIsTensor<Field>) {
      for (const MemoryDesc& tensor : field) visit(tensor);
    }
  });
}

namespace functions {
TILEWIRE_FIELDS(Elementwise, function, alpha, beta);
}  // namespace functions

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_FIELDS_H_
