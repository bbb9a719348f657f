// SPDX-License-Identifier: Apache-2.0
//
// Dense tensors whose axis is the innermost dimension in memory: rows are contiguous and
// independent; each thread takes groups of rows.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/products/softmax_rows.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/softmax/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::softmax {
absl::StatusOr<SoftmaxDesc> ResolveRows(const Request<SoftmaxDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireSoftmax(request.desc));
  ABSL_ASSIGN_OR_RETURN(SoftmaxDesc resolved, ResolveReference(request));
  const MemoryDesc& md = resolved.src;
  if (resolved.dst != md) return Unimplemented("layouts of src and dst differ");
  const bool is_row = md.dim(resolved.axis) == 1 || md.stride(resolved.axis) == 1;
  if (md.IsPlain() && md.IsDense() && is_row) return resolved;
  return Unimplemented("not dense with the axis innermost");
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const Request<SoftmaxDesc>& request) {
  const SoftmaxDesc& desc = request.desc;
  const int64_t size = desc.dst.dim(desc.axis);
  if (size > 0 && size <= MostNarrow(VectorUnit::Of(request.facts.isa).lanes()))
    return CreateNarrow(request);
  if (size > SoftmaxRows::kLongestRow) return Unimplemented("rows of 1 GiB and more");
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<SoftmaxRows>(request.facts.name,
                                                                  VectorUnit::Of(request.facts.isa),
                                                                  size, /*stride=*/size));
  const int64_t rows = size == 0 ? 0 : desc.dst.ElementCount() / size;
  const auto compute = [size, rows](const SoftmaxRows& code, const DrivenRun& run) {
    const auto* src = run.First<const float>(kArgSrc);
    auto* dst = run.First<float>(kArgDst);
    const int64_t at_once = threading::ItemsAtOnce(8192, size);
    threading::ParallelForRanges(run.team, rows, at_once, [&](int64_t first, int64_t end) {
      code.entry<SoftmaxRows::Function>()(src + first * size, dst + first * size, end - first);
    });
  };
  return MakeDriven(InfoOf(request), std::move(generator), compute);
}

}  // namespace tilewire::softmax
