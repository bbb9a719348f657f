// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/eltwise/eltwise.h"
#include "engine/primitives/eltwise/implementations.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace eltwise {
namespace {

absl::Status Validate(const EltwiseDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("eltwise", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameShape("eltwise", desc.src, desc.dst));
  if (!functions::IsOfOneReal(desc.op.function)) {
    return InvalidArgument("eltwise: no algorithm ", static_cast<int>(desc.op.function));
  }
  return absl::OkStatus();
}

}  // namespace

}  // namespace eltwise

std::vector<EltwiseDesc> EltwiseProbes(DataType type) {
  EltwiseDesc desc;
  desc.src = desc.dst = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  return {desc};
}

TILEWIRE_DEFINE_PRIMITIVE(Eltwise, eltwise,
                          {kAvx512AndAvx2, {{"dense", ResolveDense, CreateDense}}});

}  // namespace tilewire
