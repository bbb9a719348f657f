// SPDX-License-Identifier: Apache-2.0
//
// Executes a plan: streams the inputs into the layouts of the first primitives, runs the steps one
// after the other, and has the last step or reorder write each output into a buffer of its own.
// Between steps nothing is allocated or locked.
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
#include "engine/runtime/parameter_store.h"
#include "engine/runtime/plan.h"
#include "engine/runtime/step_times.h"
#include "engine/threading/arena.h"
#include "engine/threading/scratchpad.h"

namespace tilewire::runtime {

// The caller has checked that the pieces together fill `desc`.
struct InputBytes {
  const MemoryDesc* desc = nullptr;  // one of PlanInput::client
  absl::Span<const absl::string_view> pieces;
};

struct OutputBytes {
  int index = 0;                     // into Plan::outputs
  const MemoryDesc* desc = nullptr;  // one of PlanOutput::client
  AlignedBuffer bytes;               // filled: desc->SizeBytes()
};

struct ExecutionContext {
  ScratchpadPool* scratchpads = nullptr;
  threading::Team team = threading::Team::Serial();
  const std::function<absl::Status()>* interrupted = nullptr;  // may be null or empty
  // As RunOptions::allocate_output; may be null or empty.
  const std::function<absl::StatusOr<AlignedBuffer>(size_t bytes)>* allocate_output = nullptr;
  // Where not null: receives how long each input, each step and each output took, in that order.
  std::vector<absl::Duration>* laps = nullptr;
  // Where not null: how long all inputs and outputs together took is added.
  absl::Duration* reorder_time = nullptr;
  // The store of the plan's persistent buffers; null for plans that have none.
  ParameterStore* parameters = nullptr;
  // The plan's. Where not null: how long each of its rows took is added.
  StepTimes* times = nullptr;
};

//   kResourceExhausted  together the outputs are larger than `limit`, in bytes
absl::Status CheckOutputBytes(absl::Span<const OutputBytes> outputs, int64_t limit);

// Thread-safe: one plan may be executed by any number of threads.
//   kInvalidArgument    an input with too few or too many bytes; elements that a step refuses
//   kResourceExhausted  memory
//   and what `interrupted` returned
absl::Status Execute(const Plan& plan, absl::Span<const InputBytes> inputs,
                     absl::Span<OutputBytes> outputs, const ExecutionContext& context);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_EXECUTOR_H_
