// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/executor.h"

#include <chrono>
#include <cstring>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/progress.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/reorder/streaming_reorder.h"
#include "engine/primitives/verbose.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// A run of a plan of so many buffers allocates nothing for their places.
constexpr size_t kOrdinaryBuffers = 256;

// One execution of a plan: where each buffer is in memory.
class Execution {
 public:
  Execution(const Plan& plan, const ExecutionContext& context)
      : plan_(plan),
        context_(context),
        sums_(context.times == nullptr ? nullptr : context.times->OfThread()),
        buffers_(plan.buffers.size()),
        redirected_(plan.buffers.size()) {}

  absl::Status Run(absl::Span<const InputBytes> inputs, absl::Span<OutputBytes> outputs) {
    ABSL_RETURN_IF_ERROR(Prepare(outputs));
    lap_start_ = Clock::now();
    for (size_t i = 0; i < inputs.size(); ++i) {
      ABSL_RETURN_IF_ERROR(ReadInput(plan_.inputs[i], inputs[i]));
      EndLap(Lap::kReorder, i);
    }
    const size_t first_step = plan_.inputs.size();
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      ABSL_RETURN_IF_ERROR(Interrupted());
      ABSL_RETURN_IF_ERROR(RunStep(static_cast<int>(i)));
      EndLap(Lap::kStep, first_step + i);
    }
    // A step that was cut short has not computed its whole result.
    ABSL_RETURN_IF_ERROR(Interrupted());
    const bool has_timed_steps = context_.laps != nullptr || sums_ != nullptr;
    if (!has_timed_steps && context_.reorder_time != nullptr) lap_start_ = Clock::now();
    const size_t first_output = first_step + plan_.steps.size();
    for (OutputBytes& output : outputs) {
      ABSL_RETURN_IF_ERROR(WriteOutput(output));
      EndLap(Lap::kReorder, first_output + output.index);
    }
    if (sums_ != nullptr) context_.times->CountRun(sums_);
    return absl::OkStatus();
  }

 private:
  enum class Lap { kReorder, kStep };

  // Takes memory. An output that is requested in the layout in which a step writes it gets that
  // step's result directly: its buffer moves out of the arena.
  absl::Status Prepare(absl::Span<OutputBytes> outputs) {
    if (plan_.has_persistent_buffers && context_.parameters == nullptr)
      return Internal("a run without the parameters of its plan");
    ABSL_ASSIGN_OR_RETURN(arena_, context_.scratchpads->Take(plan_.arena_bytes));
    ABSL_ASSIGN_OR_RETURN(scratchpad_, context_.scratchpads->Take(plan_.scratchpad_bytes));
    for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i] = PlaceOf(plan_.buffers[i]);
    for (OutputBytes& output : outputs) {
      ABSL_ASSIGN_OR_RETURN(output.bytes, AllocateOutput(output.desc->SizeBytes()));
      const PlanOutput& planned = plan_.outputs[output.index];
      // The output may be only a part of its buffer.
      const bool is_all = plan_.buffers[planned.buffer].bytes <= output.desc->SizeBytes() &&
                          plan_.buffers[planned.buffer].constant == nullptr &&
                          plan_.buffers[planned.buffer].persistent < 0 &&
                          plan_.buffers[planned.buffer].part_of < 0;
      if (redirected_[planned.buffer] || !is_all || !SameMemory(planned.desc, *output.desc))
        continue;
      buffers_[planned.buffer] = output.bytes.data();
      redirected_[planned.buffer] = true;
    }
    // A part moves with the buffer that it is a part of.
    for (size_t i = buffers_.size(); i-- > 0;) {
      const PlanBuffer& part = plan_.buffers[i];
      if (part.part_of >= 0) buffers_[i] = buffers_[part.part_of] + part.part_offset;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<AlignedBuffer> AllocateOutput(size_t bytes) const {
    const bool is_given = context_.allocate_output != nullptr && *context_.allocate_output;
    return is_given ? (*context_.allocate_output)(bytes) : AlignedBuffer::Allocate(bytes);
  }

  std::byte* PlaceOf(const PlanBuffer& buffer) {
    if (buffer.persistent >= 0) return context_.parameters->Place(buffer.persistent);
    // The const_cast is safe because no step writes a constant.
    return buffer.constant != nullptr ? const_cast<std::byte*>(buffer.constant)
                                      : arena_.data() + buffer.offset;
  }

  // Streams an input into the layout in which the first step reads it. Bytes that are in that
  // layout already, in one piece, are not copied.
  absl::Status ReadInput(const PlanInput& input, const InputBytes& bytes) {
    if (bytes.desc->SizeBytes() == 0) return absl::OkStatus();
    const MemoryDesc* desc = &input.desc;
    for (const InputVariant& variant : input.variants) {
      if (variant.desc != *bytes.desc) continue;
      desc = &variant.desc;
      variants_.push_back(&variant);
    }
    if (!input.overwritten && !redirected_[input.buffer] && SameMemory(*bytes.desc, *desc) &&
        IsWhole(bytes)) {
      buffers_[input.buffer] =
          reinterpret_cast<std::byte*>(const_cast<char*>(bytes.pieces[0].data()));
      return absl::OkStatus();
    }
    ABSL_ASSIGN_OR_RETURN(const std::unique_ptr<StreamingReorder> reorder,
                          StreamingReorder::Create(*bytes.desc, *desc, buffers_[input.buffer]));
    for (absl::string_view piece : bytes.pieces) ABSL_RETURN_IF_ERROR(reorder->Append(piece));
    return reorder->Finish();
  }

  // Whether the input is in one piece whose elements are aligned.
  static bool IsWhole(const InputBytes& bytes) {
    return bytes.pieces.size() == 1 &&
           static_cast<int64_t>(bytes.pieces[0].size()) == bytes.desc->SizeBytes() &&
           reinterpret_cast<uintptr_t>(bytes.pieces[0].data()) % SizeOf(bytes.desc->data_type()) ==
               0;
  }

  // The variant that the layouts of the request call for instead of the step's own primitive; null
  // if nothing.
  const InputVariant* VariantOf(int step) const {
    for (const InputVariant* variant : variants_) {
      if (variant->step == step) return variant;
    }
    return nullptr;
  }

  // `row`: of StepTimes.
  void EndLap(Lap lap, size_t row) {
    const bool is_reorder = context_.reorder_time != nullptr && lap == Lap::kReorder;
    if (context_.laps == nullptr && sums_ == nullptr && !is_reorder) return;
    const Clock::time_point now = Clock::now();
    const std::chrono::nanoseconds time = now - lap_start_;
    if (sums_ != nullptr) sums_[row].fetch_add(time.count(), std::memory_order_relaxed);
    if (context_.laps != nullptr) context_.laps->push_back(absl::FromChrono(time));
    if (is_reorder) *context_.reorder_time += absl::FromChrono(time);
    lap_start_ = now;
  }

  absl::Status Interrupted() const {
    const bool asks = context_.interrupted != nullptr && *context_.interrupted;
    return asks ? (*context_.interrupted)() : absl::OkStatus();
  }

  absl::Status RunStep(int index) {
    const Step& step = plan_.steps[index];
    ReportProgress("running node", step.node);
    const VerboseNode named(step.node);
    ExecuteArgs args;
    for (const Binding& binding : step.bindings) {
      args.Set(binding.arg, binding.buffer >= 0 ? buffers_[binding.buffer] : binding.constant);
    }
    args.Set(kArgScratchpad, scratchpad_.data());
    const InputVariant* variant = VariantOf(index);
    const RowBands* bands = variant != nullptr ? variant->bands.get() : step.bands.get();
    if (bands != nullptr) {
      bands->Run(args, context_.team);
      return absl::OkStatus();
    }
    const Primitive& primitive = variant != nullptr ? *variant->primitive : *step.primitive;
    const absl::Status status = primitive.Execute(args, context_.team);
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("node '", step.node, "': ", status.message()));
  }

  absl::Status WriteOutput(OutputBytes& output) {
    const PlanOutput& planned = plan_.outputs[output.index];
    const std::byte* source = buffers_[planned.buffer];
    if (source == output.bytes.data() || output.bytes.size() == 0) return absl::OkStatus();
    if (SameMemory(planned.desc, *output.desc)) {
      std::memcpy(output.bytes.data(), source, output.bytes.size());
      return absl::OkStatus();
    }
    for (const OutputReorder& reorder : planned.reorders) {
      if (reorder.desc != *output.desc) continue;
      ExecuteArgs args;
      args.Set(kArgSrc, source)
          .Set(kArgDst, output.bytes.data())
          .Set(kArgScratchpad, scratchpad_.data());
      return reorder.reorder->Execute(args, context_.team);
    }
    return Internal("no reorder from ", planned.desc.ToString(), " to ", output.desc->ToString());
  }

  const Plan& plan_;
  const ExecutionContext& context_;
  StepTimes::Sum* const sums_;  // of this thread; null: they are not wanted
  ScratchpadPool::Lease arena_, scratchpad_;
  absl::InlinedVector<std::byte*, kOrdinaryBuffers> buffers_;  // where each of the plan's is
  absl::InlinedVector<bool, kOrdinaryBuffers> redirected_;     // it is in an output's memory
  // The variants that the layouts of the request call for.
  absl::InlinedVector<const InputVariant*, 4> variants_;
  Clock::time_point lap_start_;
};

}  // namespace

absl::Status CheckOutputBytes(absl::Span<const OutputBytes> outputs, int64_t limit) {
  int64_t bytes = 0;
  for (const OutputBytes& output : outputs) bytes += output.desc->SizeBytes();
  if (bytes <= limit) return absl::OkStatus();
  return ResourceExhausted("the outputs have ", bytes, " bytes, an answer may have ", limit);
}

absl::Status Execute(const Plan& plan, absl::Span<const InputBytes> inputs,
                     absl::Span<OutputBytes> outputs, const ExecutionContext& context) {
  return Execution(plan, context).Run(inputs, outputs);
}

}  // namespace tilewire::runtime
