// SPDX-License-Identifier: Apache-2.0
//
// Dense tensors whose axis is the innermost dimension in memory: rows are contiguous and
// independent; each thread takes groups of rows.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/products/softmax_rows.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/single_source.h"
#include "engine/primitives/softmax/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::softmax {
namespace {

// Immutable.
class Rows final : public SingleSource<float> {
 public:
  Rows(PrimitiveInfo info, const SoftmaxDesc& desc, std::unique_ptr<const SoftmaxRows> generator)
      : SingleSource(std::move(info)),
        size_(desc.dst.dim(desc.axis)),
        rows_(size_ == 0 ? 0 : desc.dst.ElementCount() / size_),
        generator_(std::move(generator)) {}

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    const auto function = generator_->entry<SoftmaxRows::Function>();
    const int64_t at_once = threading::ItemsAtOnce(8192, size_);
    threading::ParallelForRanges(team, rows_, at_once, [&](int64_t first, int64_t end) {
      function(src + first * size_, dst + first * size_, end - first);
    });
  }

  const int64_t size_, rows_;
  const std::unique_ptr<const SoftmaxRows> generator_;
};

}  // namespace

absl::StatusOr<SoftmaxDesc> ResolveRows(const Request<SoftmaxDesc>& request) {
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
  if (size >= int64_t{1} << 28) return Unimplemented("rows of 1 GiB and more");
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<SoftmaxRows>(request.facts.name,
                                                                  VectorUnit::Of(request.facts.isa),
                                                                  size, /*stride=*/size));
  return std::make_unique<Rows>(WithCode(InfoOf(request), *generator), desc, std::move(generator));
}

}  // namespace tilewire::softmax
