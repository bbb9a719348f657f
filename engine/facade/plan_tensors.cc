// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/plan_tensors.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

const MemoryDesc* DescIn(const runtime::ClientDescs& descs, Layout layout) {
  return layout == Layout::kNhwc ? &descs.channels_last : &descs.channels_first;
}

}  // namespace

absl::Status CheckBytes(absl::Span<const TensorSpec> specs, absl::Span<const InputTensor> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& spec = specs[i];
    std::optional<int64_t> bytes = ElementCount(tensors[i].dims);
    if (bytes) bytes = CheckedMul(*bytes, SizeOf(spec.type));
    int64_t given = 0;
    for (absl::string_view piece : tensors[i].pieces) given += static_cast<int64_t>(piece.size());
    if (!bytes || given != *bytes) {
      return InvalidArgument("input '", spec.name, "': ", given, " bytes given, shape ",
                             DimsToString(tensors[i].dims), " needs ",
                             bytes ? absl::StrCat(*bytes) : "more than there are");
    }
  }
  return absl::OkStatus();
}

AllInputBytes DescribeInputs(const runtime::Plan& plan, absl::Span<const InputTensor> inputs) {
  AllInputBytes input_bytes;
  for (size_t i = 0; i < inputs.size(); ++i)
    input_bytes.push_back({DescIn(plan.inputs[i].client, inputs[i].layout), inputs[i].pieces});
  return input_bytes;
}

absl::StatusOr<AllOutputBytes> DescribeOutputs(const runtime::Plan& plan,
                                               absl::Span<const OutputRequest> requests) {
  AllOutputBytes output_bytes;
  for (const OutputRequest& request : requests) {
    if (request.index < 0 || request.index >= static_cast<int>(plan.outputs.size())) {
      return InvalidArgument("output ", request.index, " of ", plan.outputs.size(),
                             " is asked for");
    }
    const MemoryDesc* desc = DescIn(plan.outputs[request.index].client, request.layout);
    output_bytes.push_back({request.index, desc, AlignedBuffer()});
  }
  return output_bytes;
}

int64_t RunBytes(const runtime::Plan& plan, absl::Span<const runtime::OutputBytes> outputs) {
  int64_t bytes = plan.arena_bytes + plan.scratchpad_bytes;
  for (const runtime::OutputBytes& output : outputs) bytes += output.desc->SizeBytes();
  return bytes;
}

}  // namespace tilewire
