// SPDX-License-Identifier: Apache-2.0
//
// One row per operation of a network (engine/network/network.h): the function that lowers it, in
// the file named as the operation. To add an operation: its file, and its line in operations.inc.
//
// Each function brings the sources into a layout that a primitive takes, appends the steps and
// binds the result. It returns
//   kUnimplemented      a combination that no primitive takes
//   kInvalidArgument    shapes that do not fit each other
//   kResourceExhausted  memory
#ifndef ENGINE_LOWERING_OPERATION_TABLE_H_
#define ENGINE_LOWERING_OPERATION_TABLE_H_

#include <variant>

#include "absl/status/status.h"
#include "engine/lowering/plan/operation_context.h"
#include "engine/network/network.h"

namespace tilewire::lowering {

#define TILEWIRE_OPERATION(Name, ...) \
  absl::Status Lower##Name(const network::Name&, OperationContext&);
#include "engine/lowering/operations.inc"
#undef TILEWIRE_OPERATION

struct OperationRow {
  absl::Status (*lower)(const network::Operation&, OperationContext&) = nullptr;
  // The operation reorders a source to a layout of its own anyway, so that a Transpose in front of
  // it costs nothing as a view.
  bool absorbs_transpose = false;
  // The operation reads its sources by their strides: a Transpose in front of it, a Reshape that
  // cuts dimensions, and a Select of a box are views.
  bool reads_strides = false;
};

template <typename Params, absl::Status (*lower)(const Params&, OperationContext&)>
absl::Status LowerAs(const network::Operation& operation, OperationContext& context) {
  return lower(std::get<Params>(operation.params), context);
}

// An operation without a row does not compile.
template <typename Params>
struct RowFor;
#define TILEWIRE_OPERATION(Name, ...)                                                   \
  template <>                                                                           \
  struct RowFor<network::Name> {                                                        \
    static constexpr OperationRow kRow = {.lower = LowerAs<network::Name, Lower##Name>, \
                                          __VA_ARGS__};                                 \
  };
#include "engine/lowering/operations.inc"
#undef TILEWIRE_OPERATION

template <typename Params>
struct OperationTable;
template <typename... Params>
struct OperationTable<std::variant<Params...>> {
  static constexpr OperationRow kRows[] = {RowFor<Params>::kRow...};
};

inline const OperationRow& RowOf(const network::Operation& operation) {
  return OperationTable<network::OperationParams>::kRows[operation.params.index()];
}

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_OPERATION_TABLE_H_
