// SPDX-License-Identifier: Apache-2.0
//
// Says on standard error which case was running when the process died, whether by a signal, by
// running too long or by a sanitizer.
#ifndef TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_CRASH_NOTE_H_
#define TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_CRASH_NOTE_H_

#include <cstdint>

namespace tilewire::testing {

// Once per process.
void InstallCrashNote();

// The case that runs from now on; one that computes for more than `seconds` of the processor's time
// ends the process.
void NoteCase(int64_t index, unsigned seconds);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_CRASH_NOTE_H_
