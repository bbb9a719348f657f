// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/plan.h"

namespace tilewire::runtime {

int Plan::WholeOf(int buffer) const {
  while (buffers[buffer].part_of >= 0) buffer = buffers[buffer].part_of;
  return buffer;
}

int64_t Plan::HeldBytes() const {
  constexpr int64_t kBytesOfAStep = 4 << 10;
  int64_t bytes = static_cast<int64_t>(steps.size()) * kBytesOfAStep;
  const auto add = [&](const Primitive& primitive) { bytes += primitive.info().code_bytes; };
  for (const Step& step : steps) {
    if (step.primitive != nullptr) add(*step.primitive);
  }
  for (const PlanInput& input : inputs) {
    for (const InputVariant& variant : input.variants) add(*variant.primitive);
  }
  for (const PlanOutput& output : outputs) {
    for (const OutputReorder& reorder : output.reorders) add(*reorder.reorder);
  }
  return bytes;
}

}  // namespace tilewire::runtime
