// SPDX-License-Identifier: Apache-2.0
//
// A primitive's table as it is written: kinds of rows, each once for all the instruction sets that
// it serves. The compiler expands it to the table of implementation.h.
//
//   TILEWIRE_DEFINE_PRIMITIVE(
//       Lrn, lrn,
//       {kAvx512AndAvx2, {{"f32_blocked", ResolveBlocked, CreateBlocked},
//                         {"f32_runs", ResolveRuns, CreateRuns}}});
//
// is lrn/avx512_f32_blocked, lrn/avx512_f32_runs, lrn/avx2_f32_blocked, lrn/avx2_f32_runs and
// lrn/reference, best first: a group takes its instruction sets in turn, all its kinds for each.
// The reference, of the functions ResolveReference and CreateReference, comes last.
#ifndef ENGINE_PRIMITIVES_ROW_TABLE_H_
#define ENGINE_PRIMITIVES_ROW_TABLE_H_

#include <cstddef>
#include <initializer_list>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/cpu/isa.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// Items that a constant holds itself. More than `most` do not compile.
template <typename T, size_t most>
class ShortList {
 public:
  constexpr ShortList(std::initializer_list<T> items) {
    for (const T& item : items) items_[size_++] = item;
  }

  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + size_; }
  constexpr size_t size() const { return size_; }

 private:
  T items_[most] = {};
  size_t size_ = 0;
};

using IsaList = ShortList<cpu::Isa, 5>;
inline constexpr IsaList kAvx512AndAvx2 = {cpu::Isa::kAvx512, cpu::Isa::kAvx2};
inline constexpr IsaList kAnyCpu = {cpu::Isa::kBaseline};

// A row without its instruction set. The row's name is "lrn/avx512_f32_runs" for the stem
// "f32_runs", "matmul/avx512" for none, and "lrn/reference" where the set is the baseline.
template <typename Desc>
struct RowKind {
  absl::string_view stem = "";
  absl::StatusOr<Desc> (*resolve)(const Request<Desc>&) = nullptr;
  absl::StatusOr<std::unique_ptr<Primitive>> (*create)(const Request<Desc>&) = nullptr;
  ImplementationTraits traits = {};
  double (*cost)(const Request<Desc>&) = nullptr;
};

template <typename Desc>
using RowKinds = ShortList<RowKind<Desc>, 9>;

template <typename Desc>
struct RowGroup {
  IsaList isas;
  RowKinds<Desc> kinds;
};

template <typename Desc, size_t count>
constexpr size_t CountRows(const RowGroup<Desc> (&groups)[count]) {
  size_t rows = 0;
  for (const RowGroup<Desc>& group : groups) rows += group.isas.size() * group.kinds.size();
  return rows;
}

// The expanded table, and the names of its rows. For constants of static storage: the rows refer
// to the names.
template <typename Desc, size_t count>
class RowTable {
 public:
  template <size_t groups>
  constexpr RowTable(absl::string_view primitive, const RowGroup<Desc> (&table)[groups]) {
    size_t row = 0;
    for (const RowGroup<Desc>& group : table) {
      for (cpu::Isa isa : group.isas) {
        for (const RowKind<Desc>& kind : group.kinds) {
          const absl::string_view name = WriteName(primitive, isa, kind.stem, names_[row]);
          rows_[row++] = {{name, isa, kind.traits}, kind.resolve, kind.create, kind.cost};
        }
      }
    }
  }
  RowTable(const RowTable&) = delete;

  constexpr absl::Span<const Implementation<Desc>> rows() const { return rows_; }

 private:
  static constexpr size_t kLongestName = 48;  // a longer one does not compile

  static constexpr absl::string_view WriteName(absl::string_view primitive, cpu::Isa isa,
                                               absl::string_view stem, char (&to)[kLongestName]) {
    const bool has_set = isa != cpu::Isa::kBaseline;
    size_t size = 0;
    for (absl::string_view part :
         {primitive, absl::string_view("/"), has_set ? cpu::IsaName(isa) : absl::string_view(),
          has_set && !stem.empty() ? absl::string_view("_") : absl::string_view(), stem}) {
      for (char letter : part) to[size++] = letter;
    }
    return {to, size};
  }

  char names_[count][kLongestName] = {};
  Implementation<Desc> rows_[count] = {};
};

// Defines Sum##Implementations and Create##Sum, for the names Sum and sum: the groups of rows, best
// first, with functions of the namespace sum, take what sum::Validate(desc, attributes) returns OK
// for. The second macro has all rows in its arguments, for a reference with traits of its own.
#define TILEWIRE_DEFINE_PRIMITIVE(Name, name, ...) \
  TILEWIRE_DEFINE_PRIMITIVE_OF_ROWS(               \
      Name, name, __VA_ARGS__,                     \
      {kAnyCpu, {{"reference", ResolveReference, CreateReference, {.is_reference = true}}}})
// The same with a reference of the propagations `backward`, of the functions
// ResolveReferenceBackward and CreateReferenceBackward, after the other.
#define TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(Name, name, backward, ...)        \
  TILEWIRE_DEFINE_PRIMITIVE_OF_ROWS(                                              \
      Name, name, __VA_ARGS__,                                                    \
      {kAnyCpu,                                                                   \
       {{"reference", ResolveReference, CreateReference, {.is_reference = true}}, \
        {"reference_backward",                                                    \
         ResolveReferenceBackward,                                                \
         CreateReferenceBackward,                                                 \
         {.is_reference = true, .propagations = backward}}}})
#define TILEWIRE_DEFINE_PRIMITIVE_OF_ROWS(Name, name, ...)                                  \
  absl::Span<const Implementation<Name##Desc>> Name##Implementations() {                    \
    using namespace name; /* NOLINT: the rows name its functions */                         \
    static constexpr RowGroup<Name##Desc> kGroups[] = {__VA_ARGS__};                        \
    static constexpr RowTable<Name##Desc, CountRows(kGroups)> kTable(#name, kGroups);       \
    return kTable.rows();                                                                   \
  }                                                                                         \
  absl::StatusOr<std::shared_ptr<const Primitive>> Create##Name(                            \
      const Name##Desc& desc, const Attributes& attributes, const CreateOptions& options) { \
    ABSL_RETURN_IF_ERROR(name::Validate(desc, attributes));                                 \
    return CreateFirst(Name##Implementations(), desc, attributes, options);                 \
  }                                                                                         \
  static_assert(true)

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ROW_TABLE_H_
