// SPDX-License-Identifier: Apache-2.0
//
// Where verbose lines go: to standard error on the thread that writes them, unless the process has
// a log of its own that takes them. Thread-safe.
#ifndef ENGINE_BASE_LINE_WRITER_H_
#define ENGINE_BASE_LINE_WRITER_H_

#include "absl/strings/string_view.h"

namespace tilewire {

// Takes whole lines, each with its end. Is called on threads that compute, several at once, and
// must not make them wait.
using LineWriter = void (*)(absl::string_view line);

// From now on; null: standard error.
void SetLineWriter(LineWriter writer);
// One write per line, so that lines of several threads do not mix.
void WriteLine(absl::string_view line);

}  // namespace tilewire

#endif  // ENGINE_BASE_LINE_WRITER_H_
