// SPDX-License-Identifier: Apache-2.0
//
// How gtest names a row of a primitive's table: as its test and in its messages.
#ifndef TESTS_ENGINE_PRIMITIVES_ROW_NAME_H_
#define TESTS_ENGINE_PRIMITIVES_ROW_NAME_H_

#include <algorithm>
#include <ostream>
#include <string>

#include "engine/primitives/implementation.h"
#include "gtest/gtest.h"

namespace tilewire {

template <typename Desc>
void PrintTo(const Implementation<Desc>& row, std::ostream* out) {
  *out << row.name;
}
inline void PrintTo(const ImplementationFacts& row, std::ostream* out) { *out << row.name; }

}  // namespace tilewire

namespace tilewire::testing {

// The row's name, with an underscore for its slash.
template <typename Row>
std::string RowName(const ::testing::TestParamInfo<Row>& row) {
  std::string name(row.param.name);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_ROW_NAME_H_
