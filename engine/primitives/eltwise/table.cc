// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/eltwise/eltwise.h"
#include "engine/primitives/eltwise/implementations.h"

namespace tilewire {
namespace eltwise {
namespace {

absl::Status Validate(const EltwiseDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("eltwise", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameShape("eltwise", desc.src, desc.dst));
  if (static_cast<int>(desc.op.algorithm) >= jit::kEltwiseAlgorithmCount) {
    return absl::InvalidArgumentError(
        absl::StrCat("eltwise: no algorithm ", static_cast<int>(desc.op.algorithm)));
  }
  return absl::OkStatus();
}

}  // namespace

}  // namespace eltwise

TILEWIRE_DEFINE_PRIMITIVE(Eltwise, eltwise,
                          {{"eltwise/avx512_dense", cpu::Isa::kAvx512}, ResolveDense, CreateDense},
                          {{"eltwise/avx2_dense", cpu::Isa::kAvx2}, ResolveDense, CreateDense},
                          {{"eltwise/reference", cpu::Isa::kBaseline, {.is_reference = true}},
                           ResolveReference,
                           CreateReference});

}  // namespace tilewire
