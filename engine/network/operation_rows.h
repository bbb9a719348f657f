// SPDX-License-Identifier: Apache-2.0
// A table with a row per kind of operation, found by the operation's index.
//
// It does what std::visit does. A visit, though, instantiates a function per kind whose name spells
// out all kinds: some 60 KB of symbols for each place that visits.
//
//   template <typename Params>
//   struct NameRow { static constexpr const char* kRow = ...; };
//   RowOf<NameRow>(operation)
//
// `Params` of a row is what the operation's `params` hold.
#ifndef ENGINE_NETWORK_OPERATION_ROWS_H_
#define ENGINE_NETWORK_OPERATION_ROWS_H_

#include <array>
#include <variant>

#include "engine/network/network.h"

namespace tilewire::network {

template <template <typename> typename Row, typename Kinds>
struct RowsOfKinds;

template <template <typename> typename Row, typename... Kinds>
struct RowsOfKinds<Row, std::variant<Kinds...>> {
  static constexpr std::array kRows = {Row<Kinds>::kRow...};
};

template <template <typename> typename Row>
const auto& RowOf(const Operation& operation) {
  return RowsOfKinds<Row, OperationParams>::kRows[operation.params.index()];
}

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_OPERATION_ROWS_H_
