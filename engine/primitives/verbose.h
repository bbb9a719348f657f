// SPDX-License-Identifier: Apache-2.0
//
// Lines about what primitives do, when the environment asks for them, on standard error or where
// base/line_writer.h says. The fields of a line are separated by commas; a field may be empty. The
// second field is when the line was written, after what it tells of: UTC, with microseconds, as in
// 2026-11-23T09:00:00.123456Z. Below it is `time`.
//
//   TILEWIRE_VERBOSE=1   once            tilewire,time,info,cpu avx512_vnni,verbose 1
//                        each execution  tilewire,time,execute,pooling/avx512_f32,
//                                        forward_inference,src f32:... dst f32:...,
//                                        scratchpad:user,algorithm:max kernel:3x3 ...,
//                                        /layer1/MaxPool,0.412 ms                   (one line)
//                                        The field before the duration is the node of the model
//                                        that the execution is a part of, if there is one.
//   TILEWIRE_VERBOSE=2   also each creation: the same fields after create:cache_miss or
//                        create:cache_hit. Before a miss, a line per better implementation,
//                                        tilewire,time,create:refused,pooling/avx512_f32,<reason>
//                        before both, where code is dumped, a line per file of its code,
//                                        tilewire,time,create:dumped,pooling/avx512_f32,<file>
//                        and for what no implementation takes
//                                        tilewire,time,create:failed,pooling,<reason>
//                        and for each stage of a model whose sizes are not known before it runs
//                                        tilewire,time,plan:stage,<what ends it>,12 steps,3.105 ms
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

// While it lives, lines of this thread name `node`, which outlives it: primitives are shared by
// nodes and know none. Work that is handed to other threads takes the name along.
class VerboseNode {
 public:
  explicit VerboseNode(absl::string_view node) : outer_(current_) { current_ = node; }
  ~VerboseNode() { current_ = outer_; }
  VerboseNode(const VerboseNode&) = delete;
  VerboseNode& operator=(const VerboseNode&) = delete;

  static absl::string_view Current() { return current_; }

 private:
  static inline thread_local absl::string_view current_;
  const absl::string_view outer_;
};

// One line: the event, the primitive, the current node, and how long it took.
void WriteVerboseLine(absl::string_view event, const PrimitiveInfo& primitive,
                      absl::Duration duration);

// The lines of a creation through a cache.
void WriteCreationLines(const PrimitiveInfo& primitive, bool hit, absl::Duration duration);
void WriteFailedCreation(PrimitiveKind kind, const absl::Status& status);

// The line of a plan that ends where sizes become known; `end` is empty for the last one.
void WriteStageLine(absl::string_view end, size_t steps, absl::Duration duration);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_VERBOSE_H_
