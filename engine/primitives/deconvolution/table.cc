// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/deconvolution.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/row_table.h"

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
    {kAvx512AndAvx2,
     {{"f32_few_outputs", ResolveFewOutputs, CreateFewOutputs},
      {"f32_direct", ResolveDirect, CreateDirect}}},
    {kAnyCpu,
     {{"reordered", ResolveReordered, CreateReordered, {.runs_another = true}},
      {"reference", ResolveReference, CreateReference, {.is_reference = true}}}});

}  // namespace tilewire
