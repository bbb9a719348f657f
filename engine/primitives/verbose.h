// SPDX-License-Identifier: Apache-2.0
//
// Lines about what primitives do, when the environment asks for them, on standard error or where
// base/line_writer.h says. The fields of a line are separated by commas; a field may be empty.
//
//   TILEWIRE_VERBOSE=1   once            tilewire,info,cpu avx512_vnni,verbose 1
//                        each execution  tilewire,execute,pooling/avx512_f32,forward_inference,
//                                        src f32:... dst f32:...,scratchpad:user,
//                                        algorithm:max kernel:3x3 ...,0.412 ms      (one line)
//   TILEWIRE_VERBOSE=2   also each creation: the same fields after create:cache_miss or
//                        create:cache_hit. Before a miss, a line per better implementation,
//                                        tilewire,create:refused,pooling/avx512_f32,<reason>
//                        before both, where code is dumped, a line per file of its code,
//                                        tilewire,create:dumped,pooling/avx512_f32,<file>
//                        and for what no implementation takes
//                                        tilewire,create:failed,pooling,<reason>
//                        and for each stage of a model whose sizes are not known before it runs
//                                        tilewire,plan:stage,<what ends it>,12 steps,3.105 ms
//
// Source: tests/engine/rows.txt V01-V04, C05. Thread-safe.
#ifndef ENGINE_PRIMITIVES_VERBOSE_H_
#define ENGINE_PRIMITIVES_VERBOSE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// ActiveDiagnostics().verbose. The first call that returns 1 or 2 writes the line about the CPU.
int VerboseLevel();

// One line: the event, the primitive, and how long it took.
void WriteVerboseLine(absl::string_view event, const PrimitiveInfo& primitive,
                      absl::Duration duration);

// The lines of a creation through a cache.
void WriteCreationLines(const PrimitiveInfo& primitive, bool hit, absl::Duration duration);
void WriteFailedCreation(PrimitiveKind kind, const absl::Status& status);

// The line of a plan that ends where sizes become known; `end` is empty for the last one.
void WriteStageLine(absl::string_view end, size_t steps, absl::Duration duration);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_VERBOSE_H_
