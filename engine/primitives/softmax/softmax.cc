// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/softmax/softmax.h"

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/softmax/implementations.h"

namespace tilewire {
namespace softmax {
namespace {

absl::Status Validate(const SoftmaxDesc& desc) {
  ABSL_RETURN_IF_ERROR(CheckSource("softmax: src", desc.src));
  ABSL_RETURN_IF_ERROR(CheckDestination("softmax: dst", desc.dst));
  if (desc.src.dims() != desc.dst.dims() || desc.src.data_type() != desc.dst.data_type()) {
    return absl::InvalidArgumentError(
        absl::StrCat("softmax: src is ", desc.src.ToString(), ", dst ", desc.dst.ToString()));
  }
  if (desc.axis < 0 || desc.axis >= desc.src.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("softmax: axis ", desc.axis, " of a tensor of rank ", desc.src.rank()));
  }
  return absl::OkStatus();
}

}  // namespace

}  // namespace softmax

absl::Span<const Implementation<SoftmaxDesc>> SoftmaxImplementations() {
  static constexpr Implementation<SoftmaxDesc> kRows[] = {
      {{"softmax/avx512_f32", cpu::Isa::kAvx512}, softmax::ResolveDenseF32, softmax::CreateRows},
      {{"softmax/avx2_f32", cpu::Isa::kAvx2}, softmax::ResolveDenseF32, softmax::CreateRows},
      {{"softmax/dense_f32", cpu::Isa::kBaseline},
       softmax::ResolveDenseF32,
       softmax::CreateDenseF32},
      {{"softmax/reference", cpu::Isa::kBaseline, {.is_reference = true}},
       softmax::ResolveReference,
       softmax::CreateReference},
  };
  return kRows;
}

TILEWIRE_DEFINE_CREATE(Softmax, softmax::Validate);

}  // namespace tilewire
