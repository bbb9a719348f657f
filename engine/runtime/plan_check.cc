// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/plan_check.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::runtime {
namespace {

absl::Status Defect(absl::string_view what, absl::string_view where) {
  return Internal("a plan: ", what, " at '", where, "'; this is a defect of the engine");
}

class Check {
 public:
  explicit Check(const Plan& plan) : plan_(plan) {
    for (const auto& bytes : plan.constants) {
      int64_t& size = constants_[bytes->data()];
      size = std::max(size, static_cast<int64_t>(bytes->size()));
    }
  }

  absl::Status Run() const {
    for (size_t i = 0; i < plan_.buffers.size(); ++i)
      ABSL_RETURN_IF_ERROR(CheckBuffer(static_cast<int>(i)));
    for (const Step& step : plan_.steps) {
      ABSL_RETURN_IF_ERROR(CheckWork(step, step.node));
      for (const ArgDesc& arg : step.args()) ABSL_RETURN_IF_ERROR(CheckArgument(step, arg));
    }
    for (const PlanInput& input : plan_.inputs) {
      ABSL_RETURN_IF_ERROR(CheckFits(input.buffer, input.desc, input.name));
      for (const InputVariant& variant : input.variants) {
        if (variant.step < 0 || variant.step >= static_cast<int>(plan_.steps.size()))
          return Defect("no step", input.name);
        ABSL_RETURN_IF_ERROR(CheckWork(variant, input.name));
        ABSL_RETURN_IF_ERROR(CheckFits(input.buffer, variant.desc, input.name));
      }
    }
    for (const PlanOutput& output : plan_.outputs)
      ABSL_RETURN_IF_ERROR(CheckFits(output.buffer, output.desc, output.name));
    return absl::OkStatus();
  }

 private:
  bool IsBuffer(int buffer) const {
    return buffer >= 0 && buffer < static_cast<int>(plan_.buffers.size());
  }

  // Bytes of a constant; 0 for what is not a constant of the plan.
  int64_t BytesOf(const void* constant) const {
    const auto found = constants_.find(constant);
    return found == constants_.end() ? 0 : found->second;
  }

  // Bytes from a buffer's first one to the end of its memory. A part may have gaps, in which its
  // neighbours lie; buffers that it is a part of have higher indices.
  int64_t BytesFrom(int index) const {
    const PlanBuffer& buffer = plan_.buffers[index];
    if (buffer.constant != nullptr) return BytesOf(buffer.constant);
    if (buffer.part_of < 0) return buffer.bytes;
    return buffer.part_of > index && IsBuffer(buffer.part_of) && buffer.part_offset >= 0
               ? BytesFrom(buffer.part_of) - buffer.part_offset
               : 0;
  }

  absl::Status CheckBuffer(int index) const {
    const PlanBuffer& buffer = plan_.buffers[index];
    if (buffer.persistent >= 0 && (buffer.constant != nullptr || buffer.part_of >= 0))
      return Defect("a persistent buffer inside another", absl::StrCat(index));
    const bool is_own = buffer.constant == nullptr && buffer.part_of < 0 && buffer.persistent < 0;
    const bool fits = is_own
                          ? buffer.offset >= 0 && buffer.offset + buffer.bytes <= plan_.arena_bytes
                          : BytesFrom(index) >= buffer.bytes;
    return fits ? absl::OkStatus() : Defect("a buffer beyond its memory", absl::StrCat(index));
  }

  absl::Status CheckFits(int buffer, const MemoryDesc& desc, absl::string_view where) const {
    if (desc.SizeBytes() == 0) return absl::OkStatus();
    if (!IsBuffer(buffer)) return Defect("no buffer", where);
    const int64_t bytes = BytesFrom(buffer);
    if (bytes >= desc.SizeBytes()) return absl::OkStatus();
    return Defect(absl::StrCat(desc.ToString(), " in ", bytes, " bytes"), where);
  }

  // `work` is a step, or what runs instead of it.
  template <typename Work>
  absl::Status CheckWork(const Work& work, absl::string_view where) const {
    if ((work.primitive == nullptr) == (work.bands == nullptr))
      return Defect("not one of a primitive and bands", where);
    const int64_t bytes = work.bands != nullptr ? work.bands->scratchpad_bytes()
                                                : work.primitive->info().scratchpad_bytes;
    if (bytes <= plan_.scratchpad_bytes) return absl::OkStatus();
    return Defect(absl::StrCat(bytes, " bytes of a shorter scratchpad"), where);
  }

  absl::Status CheckArgument(const Step& step, const ArgDesc& arg) const {
    if (arg.desc.SizeBytes() == 0 || arg.arg == kArgScratchpad) return absl::OkStatus();
    const auto binding =
        absl::c_find_if(step.bindings, [&](const Binding& one) { return one.arg == arg.arg; });
    if (binding == step.bindings.end())
      return Defect(absl::StrCat("argument ", arg.arg, " is missing"), step.node);
    if (binding->buffer >= 0) return CheckFits(binding->buffer, arg.desc, step.node);
    if (BytesOf(binding->constant) < arg.desc.SizeBytes())
      return Defect(absl::StrCat(arg.desc.ToString(), " in a shorter constant"), step.node);
    return absl::OkStatus();
  }

  const Plan& plan_;
  absl::flat_hash_map<const void*, int64_t> constants_;
};

}  // namespace

absl::Status CheckPlan(const Plan& plan) { return Check(plan).Run(); }

}  // namespace tilewire::runtime
