// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
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

TILEWIRE_DEFINE_PRIMITIVE(
    Softmax, softmax, {{"softmax/avx512_f32", cpu::Isa::kAvx512}, ResolveDenseF32, CreateRows},
    {{"softmax/avx2_f32", cpu::Isa::kAvx2}, ResolveDenseF32, CreateRows},
    {{"softmax/avx512_f32_columns", cpu::Isa::kAvx512}, ResolveColumns, CreateColumns},
    {{"softmax/avx2_f32_columns", cpu::Isa::kAvx2}, ResolveColumns, CreateColumns},
    {{"softmax/dense_f32", cpu::Isa::kBaseline}, ResolveDenseF32, CreateDenseF32},
    {{"softmax/reordered", cpu::Isa::kBaseline}, ResolveReordered, CreateReordered, true},
    {{"softmax/reference", cpu::Isa::kBaseline, {.is_reference = true}},
     ResolveReference,
     CreateReference});

}  // namespace tilewire
