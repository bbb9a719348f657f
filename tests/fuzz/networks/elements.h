// SPDX-License-Identifier: Apache-2.0
//
// Elements of any type as doubles and as bytes. Pure functions.
#ifndef TESTS_FUZZ_NETWORKS_ELEMENTS_H_
#define TESTS_FUZZ_NETWORKS_ELEMENTS_H_

#include <string>

#include "engine/memory/data_type.h"
#include "tests/support/oracle/operations.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {

// Numbers that the type holds exactly: multiples of 1/8 from -2 to 2, any bytes, small integers.
Elements RandomElements(Random& random, DataType type, int64_t count);

std::string BytesOf(DataType type, const Elements& elements);
Elements ElementsOf(DataType type, absl::string_view bytes);

}  // namespace tilewire::testing

#endif  // TESTS_FUZZ_NETWORKS_ELEMENTS_H_
