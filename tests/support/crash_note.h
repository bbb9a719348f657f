// SPDX-License-Identifier: Apache-2.0
//
// Says on standard error which case was running when the process died, whether by a signal, by
// running too long or by a sanitizer.
#ifndef TESTS_SUPPORT_CRASH_NOTE_H_
#define TESTS_SUPPORT_CRASH_NOTE_H_

#include <cstdint>

namespace tilewire::testing {

// Once per process. `kind` names a case, as "random descriptor".
void InstallCrashNote(const char* kind);

// The case that runs from now on; one that computes for more than `seconds` of the processor's time
// ends the process.
void NoteCase(int64_t index, unsigned seconds);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_CRASH_NOTE_H_
