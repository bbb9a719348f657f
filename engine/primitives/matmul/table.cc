// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/primitives/matmul/matmul.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/reordered.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire {
namespace matmul {
namespace {

absl::Status Mismatch(const MatmulDesc& desc, absl::string_view what) {
  return ShapeMismatch("matmul", desc, what);
}

absl::Status CheckZeroPoint(absl::string_view tensor, const MemoryDesc& md, int32_t zero) {
  const DataType type = md.data_type();
  const int32_t lowest = type == DataType::kS8 ? -128 : 0;
  const int32_t highest = type == DataType::kS8 ? 127 : type == DataType::kU8 ? 255 : 0;
  if (zero >= lowest && zero <= highest) return absl::OkStatus();
  return InvalidArgument("matmul: ", tensor, "'s zero point ", zero, " of ", DataTypeName(type),
                         " is not in [", lowest, ", ", highest, "]");
}

absl::Status CheckRanges(const MatmulDesc& desc) {
  if (desc.range.IsZero() && desc.weights_range.IsZero()) return absl::OkStatus();
  for (const MemoryDesc* range : {&desc.range, &desc.weights_range}) {
    if (range->dims() == Dims{2} && range->data_type() == DataType::kF32 && range->IsPlain() &&
        range->stride(0) == 1) {
      continue;
    }
    return InvalidArgument("matmul: a range is ", range->ToString(),
                           ", expected f32 [2], and both");
  }
  if (desc.src.data_type() == DataType::kU8 && desc.weights.data_type() == DataType::kU8 &&
      desc.src_zero_point == 0 && desc.weights_zero_point == 0) {
    return absl::OkStatus();
  }
  return Unimplemented("matmul: ranges are of u8, without known zero points");
}

absl::Status Validate(const MatmulDesc& desc, const Attributes& attributes) {
  const MemoryDesc &src = desc.src, &weights = desc.weights, &bias = desc.bias, &dst = desc.dst;
  if (!IsBackward(desc.prop_kind)) ABSL_RETURN_IF_ERROR(CheckDestination("matmul: dst", dst));
  const int rank = dst.rank();
  if (rank < 2 || src.rank() != rank || weights.rank() != rank ||
      (!bias.IsZero() && bias.rank() != rank)) {
    return Mismatch(desc, "takes one rank, 2 or more");
  }
  if (src.dim(rank - 1) != weights.dim(rank - 2))
    return Mismatch(desc, "src and weights differ in K");
  if (src.dim(rank - 2) != dst.dim(rank - 2)) return Mismatch(desc, "src and dst differ in M");
  if (weights.dim(rank - 1) != dst.dim(rank - 1))
    return Mismatch(desc, "weights and dst differ in N");
  for (int d = 0; d < rank; ++d) {
    const auto fits = [&](const MemoryDesc& md) {
      return md.dim(d) == dst.dim(d) || md.dim(d) == 1;
    };
    if (d < rank - 2 && (!fits(src) || !fits(weights))) {
      return Mismatch(desc, absl::StrCat("dimension ", d, " of src or weights does not fit dst"));
    }
    if (!bias.IsZero() && !fits(bias)) {
      return Mismatch(desc, absl::StrCat("dimension ", d, " of bias does not fit dst"));
    }
  }
  ABSL_RETURN_IF_ERROR(CheckZeroPoint("src", src, desc.src_zero_point));
  ABSL_RETURN_IF_ERROR(CheckZeroPoint("weights", weights, desc.weights_zero_point));
  ABSL_RETURN_IF_ERROR(CheckRanges(desc));
  if (IsBackward(desc.prop_kind)) {
    ABSL_RETURN_IF_ERROR(CheckAbsent("matmul", desc.prop_kind, "bias", bias));
    return CheckWeightedGradients("matmul", desc, attributes);
  }
  return CheckOutputScales("matmul", dst, attributes.output_scales);
}

}  // namespace

bool IsInteger(const MatmulDesc& desc) { return IsByte(desc.src.data_type()); }

absl::Status RequireInteger(const MatmulDesc& desc, const Attributes& attributes) {
  if (!IsByte(desc.weights.data_type())) {
    return Unimplemented("weights of ", DataTypeName(desc.weights.data_type()));
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc weights, desc.weights.WithDataType(DataType::kS8));
  ABSL_RETURN_IF_ERROR(RequireIntegerTypes(desc.src, weights, desc.bias, desc.dst));
  if (!desc.bias.IsZero()) return Unimplemented("a bias of integers");
  if (attributes.output_scales.mask != 0) return Unimplemented("more than one scale");
  return absl::OkStatus();
}

bool KeepsSums(const MatmulDesc& desc, const Attributes& attributes) {
  return desc.dst.data_type() == DataType::kS32 && desc.range.IsZero() &&
         attributes.post_ops.empty() && attributes.output_scales.IsDefault();
}

}  // namespace matmul

std::vector<MatmulDesc> MatmulProbes(DataType type) {
  std::vector<MatmulDesc> descs;
  for (DataType to : probes::ResultTypes(type)) {
    descs.push_back(MatmulDesc{probes::Any({8, 64}, type),
                               probes::Any({64, 48}, probes::WeightsType(type)),
                               {},
                               probes::Any({8, 48}, to)});
    descs.push_back(descs.back());
    descs.back().dst = probes::Tagged({8, 48}, to, "cn");
  }
  for (PropKind kind : {PropKind::kBackwardData, PropKind::kBackwardWeights}) {
    descs.push_back(MatmulDesc{
        probes::Any({8, 64}, type), probes::Any({64, 48}, type), {}, probes::Any({8, 48}, type)});
    descs.back().prop_kind = kind;
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE_OF_ROWS(
    Matmul, matmul,
    {{cpu::Isa::kAmx, cpu::Isa::kAvx512Vnni, cpu::Isa::kAvx512, cpu::Isa::kAvx2Vnni,
      cpu::Isa::kAvx2},
     {{"u8s8", ResolveIntegerTiles, CreateIntegerTiles, {.is_integer = true}}}},
    {{cpu::Isa::kAmx},
     {{"bf16_planes", ResolvePlanes, CreatePlanes, {.precision = Precision::kBf16}},
      {"f32_split3_planes", ResolvePlanes, CreatePlanes, {.precision = Precision::kFast}},
      {"f32_split6_planes", ResolvePlanes, CreatePlanes, {.precision = Precision::kExact}}}},
    {kAvx512AndAvx2, {{"f32", ResolveTiles, CreateTiles}}},
    {kAvx512AndAvx2,
     {{"f32_backward",
       ResolveBackward,
       CreateBackward,
       {.takes_mask = true, .propagations = kWeightedGradients}}}},
    {kAnyCpu,
     {{"typed_rows", ResolveTypedRows, CreateTypedRows},
      kReorderedBothWays<MatmulDesc, MatmulImplementations>,
      {"reference", ResolveReference, CreateReference, {.is_reference = true}},
      {"reference_backward", ResolveReferenceBackward, CreateReferenceBackward,
       kWeightedReference}}});

}  // namespace tilewire
