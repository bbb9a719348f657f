// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/executor.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/reorder/streaming_reorder.h"
#include "engine/runtime/layouts.h"

namespace tilewire::runtime {
namespace {

// One execution: what stands where in memory.
class Execution {
 public:
  Execution(const Plan& plan, const ExecutionContext& context)
      : plan_(plan),
        context_(context),
        buffers_(plan.buffers.size()),
        redirected_(plan.buffers.size()) {}

  absl::Status Run(absl::Span<const InputBytes> inputs, absl::Span<OutputBytes> outputs) {
    ABSL_RETURN_IF_ERROR(Prepare(outputs));
    for (size_t i = 0; i < inputs.size(); ++i)
      ABSL_RETURN_IF_ERROR(ReadInput(plan_.inputs[i], inputs[i]));
    for (const Step& step : plan_.steps) ABSL_RETURN_IF_ERROR(RunStep(step));
    for (OutputBytes& output : outputs) ABSL_RETURN_IF_ERROR(WriteOutput(output));
    return absl::OkStatus();
  }

 private:
  // Takes memory. An output that is asked for in the layout in which a step writes it is written
  // there at once: its buffer moves out of the arena.
  absl::Status Prepare(absl::Span<OutputBytes> outputs) {
    ABSL_ASSIGN_OR_RETURN(arena_, context_.scratchpads->Take(plan_.arena_bytes));
    ABSL_ASSIGN_OR_RETURN(scratchpad_, context_.scratchpads->Take(plan_.scratchpad_bytes));
    for (size_t i = 0; i < buffers_.size(); ++i)
      buffers_[i] = arena_.data() + plan_.buffers[i].offset;
    for (OutputBytes& output : outputs) {
      ABSL_ASSIGN_OR_RETURN(output.bytes, AlignedBuffer::Allocate(output.desc.SizeBytes()));
      const PlanOutput& planned = plan_.outputs[output.index];
      if (redirected_[planned.buffer] || !SameMemory(planned.desc, output.desc)) continue;
      buffers_[planned.buffer] = output.bytes.data();
      redirected_[planned.buffer] = true;
    }
    return absl::OkStatus();
  }

  absl::Status ReadInput(const PlanInput& input, const InputBytes& bytes) {
    ABSL_ASSIGN_OR_RETURN(const std::unique_ptr<StreamingReorder> reorder,
                          StreamingReorder::Create(bytes.desc, input.desc, buffers_[input.buffer]));
    for (absl::string_view piece : bytes.pieces) ABSL_RETURN_IF_ERROR(reorder->Append(piece));
    return reorder->Finish();
  }

  absl::Status RunStep(const Step& step) {
    if (context_.interrupted != nullptr && *context_.interrupted)
      ABSL_RETURN_IF_ERROR((*context_.interrupted)());
    ExecuteArgs args;
    for (const Binding& binding : step.bindings) {
      args.Set(binding.arg, binding.buffer >= 0 ? buffers_[binding.buffer] : binding.constant);
    }
    args.Set(kArgScratchpad, scratchpad_.data());
    return step.primitive->Execute(args, context_.team);
  }

  absl::Status WriteOutput(OutputBytes& output) {
    const PlanOutput& planned = plan_.outputs[output.index];
    const std::byte* source = buffers_[planned.buffer];
    if (source == output.bytes.data()) return absl::OkStatus();
    if (SameMemory(planned.desc, output.desc)) {
      std::memcpy(output.bytes.data(), source, output.bytes.size());
      return absl::OkStatus();
    }
    for (const OutputReorder& way : planned.reorders) {
      if (way.desc != output.desc) continue;
      ExecuteArgs args;
      args.Set(kArgSrc, source)
          .Set(kArgDst, output.bytes.data())
          .Set(kArgScratchpad, scratchpad_.data());
      return way.reorder->Execute(args, context_.team);
    }
    return absl::InternalError(
        absl::StrCat("no way from ", planned.desc.ToString(), " to ", output.desc.ToString()));
  }

  const Plan& plan_;
  const ExecutionContext& context_;
  ScratchpadPool::Lease arena_, scratchpad_;
  std::vector<std::byte*> buffers_;  // where each buffer of the plan stands
  std::vector<bool> redirected_;     // it is an output's
};

}  // namespace

absl::Status Execute(const Plan& plan, absl::Span<const InputBytes> inputs,
                     absl::Span<OutputBytes> outputs, const ExecutionContext& context) {
  return Execution(plan, context).Run(inputs, outputs);
}

}  // namespace tilewire::runtime
