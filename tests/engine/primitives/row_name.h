// SPDX-License-Identifier: Apache-2.0
//
// A row of a primitive's table in tests: how gtest names it, as its test and in its messages, and
// how large its errors may be.
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

// At most this part of a product is left out where factors are rounded to bf16 (2^-8 of each), or
// split into two such numbers (2^-16 of each, and the product of both second ones) or three.
inline double LeftOut(const ImplementationFacts& row) {
  switch (row.traits.precision) {
    case Precision::kExact:
      return 0;
    case Precision::kFast:
      return 3.1 * 0x1p-16;
    case Precision::kBf16:
      return 2.1 * 0x1p-8;
  }
  return 0;
}

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_ROW_NAME_H_
