// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/plan.h"

#include "engine/base/status_macros.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::runtime {

absl::string_view Step::implementation() const {
  return bands != nullptr ? RowBands::kName : primitive->name();
}

const std::vector<ArgDesc>& Step::args() const {
  return bands != nullptr ? bands->args() : primitive->info().args;
}

absl::StatusOr<ClientDescs> MakeClientDescs(const Dims& dims, DataType type) {
  ClientDescs descs;
  ABSL_ASSIGN_OR_RETURN(descs.channels_first, PlainDesc(dims, type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(descs.channels_last, PlainDesc(dims, type, /*channels_last=*/true));
  return descs;
}

int Plan::WholeOf(int buffer) const {
  while (buffers[buffer].part_of >= 0) buffer = buffers[buffer].part_of;
  return buffer;
}

int64_t Plan::HeldBytes() const {
  constexpr int64_t kBytesPerStep = 4 << 10;
  int64_t bytes = static_cast<int64_t>(steps.size()) * kBytesPerStep + own_bytes;
  const auto add = [&](const Primitive* primitive, const RowBands* bands) {
    if (primitive != nullptr) bytes += primitive->info().code_bytes;
    if (bands != nullptr) bytes += bands->code_bytes();
  };
  for (const Step& step : steps) add(step.primitive.get(), step.bands.get());
  for (const PlanInput& input : inputs) {
    for (const InputVariant& variant : input.variants)
      add(variant.primitive.get(), variant.bands.get());
  }
  for (const PlanOutput& output : outputs) {
    for (const OutputReorder& reorder : output.reorders) add(reorder.reorder.get(), nullptr);
  }
  return bytes;
}

}  // namespace tilewire::runtime
