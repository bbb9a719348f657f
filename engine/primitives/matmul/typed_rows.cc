// SPDX-License-Identifier: Apache-2.0
//
// Products of integers and of f64. A row of dst grows by a row of weights per element of src: the
// elements of a row are neighbours, so that the compiler's vectors take them.
#include "engine/primitives/matmul/typed_rows.h"

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/element_types.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/threading/ranges.h"
#include "engine/threading/stop.h"

namespace tilewire::matmul {
namespace {

constexpr int64_t kColumnsAtOnce = 256;       // sums that stay in cache
constexpr int64_t kOperationsAtOnce = 65536;  // in one piece of work

// A product of matrices of elements that T holds. Immutable.
template <typename T>
class TypedRows final : public Primitive {
 public:
  TypedRows(const MatmulDesc& desc, PrimitiveInfo info)
      : Primitive(std::move(info)),
        desc_(desc),
        rank_(desc.dst.rank()),
        k_(desc.src.dim(rank_ - 1)),
        n_(desc.dst.dim(rank_ - 1)),
        rows_(desc.dst.dims()) {
    rows_.back() = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const int64_t rows = *tilewire::ElementCount(rows_);
    threading::ParallelForItems(team, rows, threading::ItemsAtOnce(kOperationsAtOnce, k_ * n_),
                                [&](int64_t row) { RunRow(args, row); });
  }

  void RunRow(const ExecuteArgs& args, int64_t row) const {
    Dims index(rank_, 0);
    int64_t rest = row;
    for (int d = rank_ - 1; d-- > 0; rest /= rows_[d]) index[d] = rest % rows_[d];
    Dims matrix = index;
    matrix[rank_ - 2] = 0;
    const T* src =
        args.Get<const T>(kArgSrc) + desc_.src.Offset(BroadcastIndex(desc_.src.dims(), index));
    const T* weights = args.Get<const T>(kArgWeights) +
                       desc_.weights.Offset(BroadcastIndex(desc_.weights.dims(), matrix));
    T* dst = args.Get<T>(kArgDst) + row * n_;
    for (int64_t n = 0; n < n_; n += kColumnsAtOnce)
      RunColumns(src, weights + n, std::min(kColumnsAtOnce, n_ - n), dst + n);
  }

  void RunColumns(const T* src, const T* weights, int64_t count, T* dst) const {
    SumOf<T> sums[kColumnsAtOnce] = {};
    threading::StopCheck stopped;
    for (int64_t k = 0; k < k_ && !stopped(); ++k) {
      const SumOf<T> factor = static_cast<SumOf<T>>(src[k]);
      const T* row = weights + k * n_;
      for (int64_t n = 0; n < count; ++n) sums[n] += factor * static_cast<SumOf<T>>(row[n]);
    }
    for (int64_t n = 0; n < count; ++n) dst[n] = static_cast<T>(sums[n]);
  }

  const MatmulDesc desc_;
  const int rank_;
  const int64_t k_, n_;
  Dims rows_;  // dst's dims, with 1 in the place of the columns
};

}  // namespace

absl::Status RequireTyped(const MatmulDesc& desc, const Attributes& attributes) {
  const DataType type = desc.dst.data_type();
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  const bool is_wide_integer = IsIntegerType(type) && !IsByte(type);
  if ((!is_wide_integer && type != DataType::kF64) || !desc.bias.IsZero())
    return Unimplemented("takes f64 and integers of 16 bits and more, without bias");
  return RequireType(type, {&desc.src, &desc.weights});
}

absl::StatusOr<MatmulDesc> ResolveTypedRows(const Request<MatmulDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireTyped(request.desc, request.attributes));
  ABSL_ASSIGN_OR_RETURN(MatmulDesc resolved, WithPlainTensors(request.desc));
  for (const MemoryDesc* tensor : {&resolved.src, &resolved.weights, &resolved.dst})
    ABSL_RETURN_IF_ERROR(RequireRowMajor(*tensor));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateTypedRows(const Request<MatmulDesc>& request) {
  return VisitIntegerOrDouble(
      request.desc.dst.data_type(), [&](auto element) -> std::unique_ptr<Primitive> {
        return std::make_unique<TypedRows<decltype(element)>>(request.desc, InfoOf(request));
      });
}

}  // namespace tilewire::matmul
