// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/deconvolution.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/reordered.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire {
std::vector<DeconvolutionDesc> DeconvolutionProbes(DataType type) {
  DeconvolutionDesc desc;
  desc.src = probes::Any({1, 32, 7, 7}, type);
  desc.weights = probes::Any({16, 32, 2, 2}, type);
  desc.dst = probes::Any({1, 16, 14, 14}, type);
  desc.strides = {2, 2};
  desc.dilations = desc.padding_left = desc.padding_right = {0, 0};
  DeconvolutionDesc one_output = desc;
  one_output.src = probes::Any({1, 64, 32, 32}, type);
  one_output.weights = probes::Any({1, 64, 2, 2}, type);
  one_output.dst = probes::Any({1, 1, 64, 64}, type);
  DeconvolutionDesc named = desc;
  named.src = probes::Tagged({1, 32, 7, 7}, type, "nchw");
  named.dst = probes::Tagged({1, 16, 14, 14}, type, "nhwc");
  DeconvolutionDesc of_src = desc, of_weights = desc;
  of_src.prop_kind = PropKind::kBackwardData;
  of_weights.prop_kind = PropKind::kBackwardWeights;
  return {desc, one_output, named, of_src, of_weights};
}

TILEWIRE_DEFINE_PRIMITIVE_OF_ROWS(
    Deconvolution, deconvolution,
    {kAvx512AndAvx2,
     {{"f32_few_outputs", ResolveFewOutputs, CreateFewOutputs, {}, CostFewOutputs},
      {"f32_direct", ResolveDirect, CreateDirect, {}, CostDirect},
      {"f32_backward",
       ResolveBackward,
       CreateBackward,
       {.takes_mask = true, .propagations = kWeightedGradients}}}},
    {kAnyCpu,
     {kReorderedBothWays<DeconvolutionDesc, DeconvolutionImplementations>,
      {"reference", ResolveReference, CreateReference, {.is_reference = true}},
      {"reference_backward", ResolveReferenceBackward, CreateReferenceBackward,
       kWeightedReference}}});

}  // namespace tilewire
