// SPDX-License-Identifier: Apache-2.0
//
// Executes a plan: inputs are streamed into the layouts of the first primitives, the steps run one
// after the other, and outputs are written into their own buffers by the last step or reorder. No
// allocation and no lock between steps.
#ifndef ENGINE_RUNTIME_EXECUTOR_H_
#define ENGINE_RUNTIME_EXECUTOR_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/scratchpad.h"
#include "engine/runtime/plan.h"
#include "engine/threading/arena.h"

namespace tilewire::runtime {

struct InputBytes {
  MemoryDesc desc;  // plain and dense, of the plan's dims
  absl::Span<const absl::string_view> pieces;
};

struct OutputBytes {
  int index = 0;        // into Plan::outputs
  MemoryDesc desc;      // PlainDesc() of the output's dims, channels last or not
  AlignedBuffer bytes;  // filled: desc.SizeBytes()
};

struct ExecutionContext {
  ScratchpadPool* scratchpads = nullptr;
  threading::Team team = threading::Team::Serial();
  const std::function<absl::Status()>* interrupted = nullptr;  // may be null or empty
  // Where not null: filled with how long each input, each step and each output took, in that order.
  std::vector<absl::Duration>* laps = nullptr;
};

// kResourceExhausted  together they are larger than `limit`
absl::Status CheckOutputBytes(absl::Span<const OutputBytes> outputs, int64_t limit);

// Thread-safe: one plan may be executed by any number of threads.
//   kInvalidArgument    bytes of an input that do not fill it
//   kResourceExhausted  memory
//   what `interrupted` returned
absl::Status Execute(const Plan& plan, absl::Span<const InputBytes> inputs,
                     absl::Span<OutputBytes> outputs, const ExecutionContext& context);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_EXECUTOR_H_
