// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/layer_normalization/layer_normalization.h"

#include <cmath>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layer_normalization/implementations.h"
#include "engine/primitives/layout.h"

namespace tilewire {
namespace layer_normalization {
namespace {

absl::Status Validate(const LayerNormalizationDesc& desc) {
  ABSL_RETURN_IF_ERROR(CheckSource("layer_normalization: src", desc.src));
  ABSL_RETURN_IF_ERROR(CheckDestination("layer_normalization: dst", desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameDims("layer_normalization: src", desc.src, "dst", desc.dst));
  if (desc.src.rank() < 2 || desc.src.rank() > 5) {
    return absl::InvalidArgumentError(absl::StrCat("layer_normalization: src has rank ",
                                                   desc.src.rank(), ", allowed are 2 to 5"));
  }
  if (!std::isfinite(desc.epsilon)) {
    return absl::InvalidArgumentError("layer_normalization: epsilon must be finite");
  }
  return absl::OkStatus();
}

MemoryDesc RowMajor(const Dims& dims) {
  absl::StatusOr<MemoryDesc> desc =
      MemoryDesc::CreatePattern(dims, DataType::kF32, PlainPattern(static_cast<int>(dims.size())));
  TILEWIRE_CHECK(desc.ok(), "a part of a valid tensor's dims has a size");
  return *std::move(desc);
}

}  // namespace

PrimitiveInfo InfoOf(const LayerNormalizationDesc& desc, const Attributes& attributes,
                     const ImplementationFacts& facts) {
  std::vector<ArgDesc> args = ArgsOf(desc.src, desc.dst);
  if (desc.use_global_stats) {
    Dims rows = desc.src.dims();
    rows.pop_back();
    args.push_back({kArgMean, RowMajor(rows)});
    args.push_back({kArgVariance, RowMajor(rows)});
  }
  if (desc.use_scale_shift) {
    args.push_back({kArgWeights, RowMajor({2, desc.src.dim(desc.src.rank() - 1)})});
  }
  return BasicInfo(facts, PrimitiveKind::kLayerNormalization, std::move(args), attributes);
}

int64_t RowsOf(const LayerNormalizationDesc& desc) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < desc.src.rank(); ++d) rows *= desc.src.dim(d);
  return rows;
}

}  // namespace layer_normalization

absl::Span<const Implementation<LayerNormalizationDesc>> LayerNormalizationImplementations() {
  using namespace layer_normalization;  // NOLINT: the rows below name its functions
  static constexpr Implementation<LayerNormalizationDesc> kRows[] = {
      {{"layer_normalization/avx512_f32", cpu::Isa::kAvx512}, ResolveRows, CreateRows},
      {{"layer_normalization/avx2_f32", cpu::Isa::kAvx2}, ResolveRows, CreateRows},
      {{"layer_normalization/reference", cpu::Isa::kBaseline, {.is_reference = true}},
       ResolveReference,
       CreateReference},
  };
  return kRows;
}

TILEWIRE_DEFINE_CREATE(LayerNormalization, layer_normalization::Validate);

}  // namespace tilewire
