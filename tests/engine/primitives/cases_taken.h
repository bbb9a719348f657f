// SPDX-License-Identifier: Apache-2.0
//
// How many of a test's cases each row of a primitive's table takes: cases_taken.txt declares it,
// and a test in which a row takes another number fails, since a row that begins to refuse nine
// layouts of ten still computes the tenth.
//
// After a change that is meant: run the tests of //tests/engine/primitives, then
// tests/engine/primitives/cases_taken.py, which writes their counts into the file; the difference
// says what the change costs or gains. Rows that the CPU at hand lacks keep their lines; a row that
// no CPU has run yet is "due", and not judged. Rows that run another one are not counted: which row
// runs inside depends on the CPU. Counts depend on neither the CPU nor the number of threads.
#ifndef TESTS_ENGINE_PRIMITIVES_CASES_TAKEN_H_
#define TESTS_ENGINE_PRIMITIVES_CASES_TAKEN_H_

#include "absl/strings/string_view.h"

namespace tilewire::testing {

// One case of the running test, which the row of this name takes or refuses. On the thread of the
// test; the counts are judged at its end.
void CountCase(absl::string_view row, bool taken);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_CASES_TAKEN_H_
