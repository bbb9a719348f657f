// SPDX-License-Identifier: Apache-2.0
//
// The end of a primitive's creation and its executions, which count and report (verbose.h).
#include <utility>

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/operation_count.h"
#include "engine/primitives/primitive.h"
#include "engine/primitives/verbose.h"

namespace tilewire {
namespace {

constexpr uintptr_t kAlignmentMask = AlignedBuffer::kAlignment - 1;

}  // namespace

absl::Status Primitive::Execute(const ExecuteArgs& args, const threading::Team& team) const {
  for (const ArgDesc& entry : info_.args) {
    if (args.Find(entry.arg) == nullptr && entry.desc.SizeBytes() != 0) {
      return InvalidArgument(name(), ": ", ArgName(entry.arg), " is missing");
    }
  }
  // In library mode the scratchpad is the primitive's own, and one thread at a time executes it.
  auto* scratchpad = const_cast<std::byte*>(library_scratchpad_.data());
  if (info_.scratchpad_mode == ScratchpadMode::kUser && info_.scratchpad_bytes > 0) {
    scratchpad = args.Get<std::byte>(kArgScratchpad);
    if (scratchpad == nullptr) {
      return InvalidArgument(name(), ": scratchpad is missing");
    }
    if ((reinterpret_cast<uintptr_t>(scratchpad) & kAlignmentMask) != 0) {
      return InvalidArgument(name(), ": scratchpad is not on a 64-byte boundary");
    }
  }
  ABSL_RETURN_IF_ERROR(CheckElements(args));
  if (VerboseLevel() == 0) {
    Run(args, scratchpad, team);
    return absl::OkStatus();
  }
  const absl::Time start = absl::Now();
  Run(args, scratchpad, team);
  WriteVerboseLine("execute", info_, absl::Now() - start);
  return absl::OkStatus();
}

absl::Status FinishCreation(const Attributes& attributes, CreationRecord record,
                            Primitive* primitive) {
  primitive->info_.reads_destination = attributes.post_ops.HasSum();
  primitive->info_.pools_destination = attributes.post_ops.HasMaxPooling();
  primitive->info_.operations = OperationCount(*primitive);
  primitive->info_.creation = std::move(record);
  primitive->info_.creation.attributes = attributes.ToString();
  if (primitive->info_.scratchpad_mode != ScratchpadMode::kLibrary) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(primitive->library_scratchpad_,
                        AlignedBuffer::Allocate(primitive->info_.scratchpad_bytes));
  return absl::OkStatus();
}

}  // namespace tilewire
