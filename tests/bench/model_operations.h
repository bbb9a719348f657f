// SPDX-License-Identifier: Apache-2.0
//
// The operations of families.txt whose primitives models alone use, and which the peer does not
// have: they are measured against the reference row of their own table. Pure functions.
#ifndef TESTS_BENCH_MODEL_OPERATIONS_H_
#define TESTS_BENCH_MODEL_OPERATIONS_H_

#include <optional>

#include "engine/primitives/primitives.h"
#include "tests/bench/operation.h"

namespace tilewire::bench {

// nullopt  the operation is not one of these
std::optional<OpDesc> ModelDescriptor(const Operation& operation, absl::string_view blocked);

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_MODEL_OPERATIONS_H_
