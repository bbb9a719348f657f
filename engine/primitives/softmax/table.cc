// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/softmax/implementations.h"
#include "engine/primitives/softmax/softmax.h"

namespace tilewire {
namespace softmax {
namespace {

absl::Status Validate(const SoftmaxDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("softmax", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameShape("softmax", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckAxis("softmax", desc.axis, desc.src));
  return absl::OkStatus();
}

}  // namespace

}  // namespace softmax

std::vector<SoftmaxDesc> SoftmaxProbes(DataType type) {
  SoftmaxDesc desc;
  desc.src = desc.dst = probes::Tagged({2, 32}, type, "nc");
  SoftmaxDesc blocked;
  blocked.src = blocked.dst = probes::Tagged({2, 32, 4, 4}, type, "nChw16c");
  return {desc, blocked};
}

TILEWIRE_DEFINE_PRIMITIVE(
    Softmax, softmax, {kAvx512AndAvx2, {{"f32", ResolveRows, CreateRows}}},
    {kAvx512AndAvx2, {{"f32_columns", ResolveColumns, CreateColumns}}},
    {kAnyCpu, {{"reordered", ResolveReordered, CreateReordered, {.runs_another = true}}}});

}  // namespace tilewire
