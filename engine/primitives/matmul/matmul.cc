// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/matmul/matmul.h"

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/implementations.h"

namespace tilewire {
namespace matmul {
namespace {

absl::Status Mismatch(const MatmulDesc& desc, absl::string_view what) {
  return ShapeMismatch("matmul", desc, what);
}

absl::Status Validate(const MatmulDesc& desc, const Attributes&) {
  const MemoryDesc &src = desc.src, &weights = desc.weights, &bias = desc.bias, &dst = desc.dst;
  ABSL_RETURN_IF_ERROR(CheckDestination("matmul: dst", dst));
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
  return absl::OkStatus();
}

}  // namespace

}  // namespace matmul

TILEWIRE_DEFINE_PRIMITIVE(
    Matmul, matmul,
    {{"matmul/amx_bf16_planes", cpu::Isa::kAmx, {.precision = Precision::kBf16}},
     ResolvePlanes,
     CreatePlanes},
    {{"matmul/amx_f32_split3_planes", cpu::Isa::kAmx, {.precision = Precision::kFast}},
     ResolvePlanes,
     CreatePlanes},
    {{"matmul/amx_f32_split6_planes", cpu::Isa::kAmx, {.precision = Precision::kExact}},
     ResolvePlanes,
     CreatePlanes},
    {{"matmul/avx512_f32", cpu::Isa::kAvx512}, ResolveTiles, CreateTiles},
    {{"matmul/avx2_f32", cpu::Isa::kAvx2}, ResolveTiles, CreateTiles},
    {{"matmul/typed_rows", cpu::Isa::kBaseline}, ResolveTypedRows, CreateTypedRows},
    {{"matmul/reference", cpu::Isa::kBaseline, {.is_reference = true}},
     ResolveReference,
     CreateReference});

}  // namespace tilewire
