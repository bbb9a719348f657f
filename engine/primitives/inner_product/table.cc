// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/inner_product.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/reordered.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire {
namespace inner_product {
namespace {

absl::Status Mismatch(const InnerProductDesc& desc, absl::string_view what) {
  return ShapeMismatch("inner_product", desc, what);
}

absl::Status Validate(const InnerProductDesc& desc, const Attributes& attributes) {
  const MemoryDesc &src = desc.src, &weights = desc.weights, &dst = desc.dst;
  if (src.rank() < 2 || src.rank() > 5) return Mismatch(desc, "src is not of rank 2 to 5");
  if (weights.rank() != src.rank()) return Mismatch(desc, "src and weights differ in rank");
  for (int d = 1; d < src.rank(); ++d) {
    if (src.dim(d) != weights.dim(d)) {
      return Mismatch(desc, absl::StrCat("dimension ", d, " of src and weights differs"));
    }
  }
  if (dst.rank() != 2 || dst.dim(0) != src.dim(0) || dst.dim(1) != weights.dim(0)) {
    return Mismatch(desc, "dst is not [N,O]");
  }
  if (!desc.bias.IsZero() && desc.bias.dims() != Dims{weights.dim(0)}) {
    return Mismatch(desc, "bias is not [O]");
  }
  if (IsBackward(desc.prop_kind)) return CheckWeightedGradients("inner_product", desc, attributes);
  ABSL_RETURN_IF_ERROR(CheckDestination("inner_product: dst", dst));
  return CheckChannelScales("inner_product", dst, attributes.output_scales);
}

}  // namespace

absl::Status RequireForwardF32(const InnerProductDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.dst, desc.bias));
  return RequireNoOutputScales(attributes);
}

bool IsInteger(const InnerProductDesc& desc) { return IsByte(desc.src.data_type()); }

absl::Status RequireForwardInteger(const InnerProductDesc& desc) {
  return RequireIntegerTypes(desc.src, desc.weights, desc.bias, desc.dst);
}

}  // namespace inner_product

std::vector<InnerProductDesc> InnerProductProbes(DataType type) {
  std::vector<InnerProductDesc> descs;
  for (DataType to : probes::ResultTypes(type)) {
    for (int64_t images : {2, 16}) {
      InnerProductDesc desc;
      desc.src = probes::Any({images, 64}, type);
      desc.weights = probes::Any({32, 64}, probes::WeightsType(type));
      desc.dst = probes::Any({images, 32}, to);
      descs.push_back(desc);
    }
    InnerProductDesc named = descs.back();
    named.weights = probes::Tagged({32, 64}, probes::WeightsType(type), "io");
    descs.push_back(named);
  }
  for (PropKind kind : {PropKind::kBackwardData, PropKind::kBackwardWeights}) {
    descs.push_back({kind,
                     probes::Any({16, 64}, type),
                     probes::Any({32, 64}, type),
                     {},
                     probes::Any({16, 32}, type)});
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE_OF_ROWS(
    InnerProduct, inner_product,
    {{cpu::Isa::kAmx, cpu::Isa::kAvx512Vnni, cpu::Isa::kAvx512, cpu::Isa::kAvx2Vnni,
      cpu::Isa::kAvx2},
     {{"u8s8", ResolveIntegerPacked, CreateIntegerPacked, {.is_integer = true}}}},
    {{cpu::Isa::kAmx},
     {{"bf16_planes", ResolvePlanes, CreatePlanes, {.precision = Precision::kBf16}},
      {"f32_split3_planes", ResolvePlanes, CreatePlanes, {.precision = Precision::kFast}}}},
    {{cpu::Isa::kAvx512Bf16}, {{"", ResolvePairs, CreatePairs, {.precision = Precision::kBf16}}}},
    // By three planes a number of weights is 6 bytes, and few rows wait for memory.
    {kAvx512AndAvx2, {{"f32", ResolvePacked, CreatePacked}}},
    {kAvx512AndAvx2, {{"f32_plain_weights", ResolvePlainWeights, CreatePlainWeights}}},
    {kAvx512AndAvx2,
     {{"f32_backward",
       ResolveBackward,
       CreateBackward,
       {.takes_mask = true, .propagations = kWeightedGradients}}}},
    {kAnyCpu,
     {kReorderedBothWays<InnerProductDesc, InnerProductImplementations>,
      {"reference", ResolveReference, CreateReference, {.is_reference = true}},
      {"reference_backward", ResolveReferenceBackward, CreateReferenceBackward,
       kWeightedReference}}});

}  // namespace tilewire
