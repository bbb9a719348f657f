// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/eltwise/eltwise.h"

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/eltwise/implementations.h"

namespace tilewire {
namespace eltwise {
namespace {

absl::Status Validate(const EltwiseDesc& desc) {
  ABSL_RETURN_IF_ERROR(CheckSource("eltwise: src", desc.src));
  ABSL_RETURN_IF_ERROR(CheckDestination("eltwise: dst", desc.dst));
  if (desc.src.dims() != desc.dst.dims() || desc.src.data_type() != desc.dst.data_type()) {
    return absl::InvalidArgumentError(
        absl::StrCat("eltwise: src is ", desc.src.ToString(), ", dst ", desc.dst.ToString()));
  }
  if (static_cast<int>(desc.op.algorithm) >= jit::kEltwiseAlgorithmCount) {
    return absl::InvalidArgumentError(
        absl::StrCat("eltwise: no algorithm ", static_cast<int>(desc.op.algorithm)));
  }
  return absl::OkStatus();
}

}  // namespace

}  // namespace eltwise

absl::Span<const Implementation<EltwiseDesc>> EltwiseImplementations() {
  static constexpr Implementation<EltwiseDesc> kRows[] = {
      {{"eltwise/avx512_dense", cpu::Isa::kAvx512}, eltwise::ResolveDense, eltwise::CreateDense},
      {{"eltwise/avx2_dense", cpu::Isa::kAvx2}, eltwise::ResolveDense, eltwise::CreateDense},
      {{"eltwise/reference", cpu::Isa::kBaseline, {.is_reference = true}},
       eltwise::ResolveReference,
       eltwise::CreateReference},
  };
  return kRows;
}

TILEWIRE_DEFINE_CREATE(Eltwise, eltwise::Validate);

}  // namespace tilewire
