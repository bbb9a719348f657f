// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/deconvolution.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"

namespace tilewire {
namespace deconvolution {

absl::Status RequireForwardF32(const DeconvolutionDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireForward(desc.prop_kind));
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  return RequireNoOutputScales(attributes);
}

}  // namespace deconvolution

TILEWIRE_DEFINE_PRIMITIVE(
    Deconvolution, deconvolution,
    {{"deconvolution/avx512_f32_few_outputs", cpu::Isa::kAvx512},
     ResolveFewOutputs,
     CreateFewOutputs},
    {{"deconvolution/avx512_f32_direct", cpu::Isa::kAvx512}, ResolveDirect, CreateDirect},
    {{"deconvolution/avx2_f32_few_outputs", cpu::Isa::kAvx2}, ResolveFewOutputs, CreateFewOutputs},
    {{"deconvolution/avx2_f32_direct", cpu::Isa::kAvx2}, ResolveDirect, CreateDirect},
    {{"deconvolution/reordered", cpu::Isa::kBaseline}, ResolveReordered, CreateReordered, true},
    {{"deconvolution/reference", cpu::Isa::kBaseline, {.is_reference = true}},
     ResolveReference,
     CreateReference});

}  // namespace tilewire
