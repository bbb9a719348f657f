// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/kernels/products/strided_product.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/batches.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/threading/slots.h"

namespace tilewire::matmul {
namespace {

constexpr int64_t kFewestProducts = 32 * 1024;  // of a piece of work, where there are as many
constexpr int64_t kMostPlaces = 4096;  // products of a batch whose places are kept in a table

// The sizes of the dimensions before `end` in one, and the step along it; nullopt where they do not
// continue each other.
std::optional<std::pair<int64_t, int64_t>> RowsOf(const MemoryDesc& md, int end) {
  int64_t count = 1, step = 0;
  for (int d = end - 1; d >= 0; --d) {
    if (md.dim(d) == 1) continue;
    if (count == 1) step = md.stride(d);
    if (md.stride(d) != count * step) return std::nullopt;
    count *= md.dim(d);
  }
  return std::pair(count, step);
}

// Products with one matrix of weights as one product of all their rows, without offset0, where the
// rows of src and dst are evenly spaced.
MatmulDesc OneProduct(const MatmulDesc& desc) {
  const Shape shape = ShapeOf(desc);
  const int rank = desc.dst.rank();
  if (shape.weights_batch != 1 || shape.batch <= 1 || desc.dst.ElementCount() == 0) return desc;
  const auto src = RowsOf(desc.src, rank - 1), dst = RowsOf(desc.dst, rank - 1);
  if (!src || !dst || src->first != dst->first) return desc;
  const auto matrix = [&](const MemoryDesc& md, int64_t rows, int64_t step) {
    return MemoryDesc::CreateStrided({rows, md.dim(rank - 1)}, DataType::kF32,
                                     {step, md.stride(rank - 1)});
  };
  const int64_t k_step = desc.weights.stride(rank - 2);
  const auto one_src = matrix(desc.src, src->first, src->second);
  const auto one_dst = matrix(desc.dst, dst->first, dst->second);
  const auto weights = matrix(desc.weights, shape.k, k_step);
  const auto bias =
      desc.bias.IsZero() ? absl::StatusOr<MemoryDesc>(desc.bias) : matrix(desc.bias, 1, shape.n);
  if (!one_src.ok() || !one_dst.ok() || !weights.ok() || !bias.ok()) return desc;
  return MatmulDesc{.src = *one_src,
                    .weights = *weights,
                    .bias = *bias,
                    .dst = *one_dst,
                    .prop_kind = desc.prop_kind};
}

// Immutable.
class Tiles final : public Primitive {
 public:
  // `one` is what is computed from the elements at offset0 of `desc` on.
  Tiles(PrimitiveInfo info, const MatmulDesc& one, int64_t slots,
        std::unique_ptr<const StridedProduct> product)
      : Primitive(std::move(info)),
        desc_(one),
        shape_(ShapeOf(one)),
        slots_(slots),
        product_(std::move(product)),
        at_once_(std::max<int64_t>(
            1, kFewestProducts / std::max<int64_t>(1, product_->products_of_piece()))) {
    for (int64_t b = 0; b < shape_.batch && shape_.batch <= kMostPlaces; ++b)
      places_.push_back(PlaceOf(b));
  }

 private:
  // A product of the batch: elements before its matrices, and the number of its weights.
  struct Place {
    int64_t src, dst, weights;
  };

  Place PlaceOf(int64_t b) const {
    return {BatchOffset(desc_, desc_.src, b), BatchOffset(desc_, desc_.dst, b),
            WeightsOf(desc_, b)};
  }

  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    auto* copies = reinterpret_cast<float*>(scratchpad);
    const int64_t copied = product_->copied_panels(), panel = product_->panel_elements();
    team.ParallelFor(shape_.weights_batch * copied, [&](int64_t i) {
      product_->CopyPanel(Weights(args, i / copied), i % copied, copies + i * panel);
    });
    float* const sums = copies + shape_.weights_batch * copied * panel;
    const int64_t all = shape_.batch * product_->pieces();
    threading::ParallelForInSlots(
        team, DivUp(all, at_once_), slots_, [&](int64_t task, int64_t slot) {
          const int64_t first = task * at_once_;
          for (int64_t i = first; i < std::min(all, first + at_once_); ++i)
            RunPiece(args, i, copies, sums + slot * product_->sums_elements());
        });
  }

  // A piece of one product.
  void RunPiece(const ExecuteArgs& args, int64_t piece, const float* copies, float* sums) const {
    const int64_t b = piece / product_->pieces();
    const Place place = places_.empty() ? PlaceOf(b) : places_[b];
    const StridedProduct::Operands operands = {
        .src = First<const float>(args, kArgSrc) + place.src,
        .weights = Weights(args, place.weights),
        .copies = copies + place.weights * product_->copied_panels() * product_->panel_elements(),
        .bias = First<const float>(args, kArgBias),
        .dst = First<float>(args, kArgDst) + place.dst};
    product_->RunPiece(piece % product_->pieces(), operands, sums);
  }

  const float* Weights(const ExecuteArgs& args, int64_t index) const {
    return First<const float>(args, kArgWeights) + WeightsOffset(desc_, index);
  }

  const MatmulDesc desc_;
  const Shape shape_;
  const int64_t slots_;
  const std::unique_ptr<const StridedProduct> product_;
  const int64_t at_once_;      // pieces of any products, for one thread
  std::vector<Place> places_;  // of all products, or empty
};

absl::Status RequireStrides(const MemoryDesc& md) {
  if (!md.IsPlain()) return Unimplemented(md.ToString(), " has blocks");
  for (int back = 0; back < 2; ++back) {
    if (StrideOf(md, back) > StridedProduct::kLongestStride)
      return Unimplemented("strides over 25 bits");
  }
  return absl::OkStatus();
}

StridedProduct::Shape ProductOf(const MatmulDesc& desc, const PostOps& post_ops) {
  const Shape shape = ShapeOf(desc);
  const int row = desc.dst.rank() - 2, last = desc.dst.rank() - 1;
  return {.m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .src_row = desc.src.stride(row),
          .src_k = desc.src.stride(last),
          .weights_k = desc.weights.stride(row),
          .weights_n = desc.weights.stride(last),
          .dst_row = desc.dst.stride(row),
          .bias = !desc.bias.IsZero(),
          .adds_parts = desc.prop_kind == PropKind::kForwardTraining,
          .post_ops = post_ops};
}

}  // namespace

absl::StatusOr<MatmulDesc> ResolveTiles(const Request<MatmulDesc>& request) {
  const MatmulDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  ABSL_ASSIGN_OR_RETURN(const MatmulDesc resolved, ResolveReference(request));
  const MatmulDesc product = OneProduct(resolved);
  for (const MemoryDesc* md : {&resolved.src, &resolved.weights, &resolved.dst, &product.src,
                               &product.weights, &product.dst}) {
    ABSL_RETURN_IF_ERROR(RequireStrides(*md));
  }
  const int last = resolved.dst.rank() - 1;
  if (resolved.dst.dim(last) > 1 && resolved.dst.stride(last) != 1) {
    return Unimplemented("elements of a row of dst do not follow each other");
  }
  const MemoryDesc& bias = resolved.bias;
  if (bias.IsZero()) return resolved;
  const int64_t n = resolved.dst.dim(last);
  if (bias.ElementCount() != n || bias.dim(last) != n || (n > 1 && bias.stride(last) != 1) ||
      !bias.IsPlain()) {
    return Unimplemented("bias is not one dense row");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateTiles(const Request<MatmulDesc>& request) {
  const MatmulDesc one = OneProduct(request.desc);
  const Shape shape = ShapeOf(one);
  ABSL_ASSIGN_OR_RETURN(
      auto product, StridedProduct::Create(request.facts.name, VectorUnit::Of(request.facts.isa),
                                           ProductOf(one, request.attributes.post_ops)));
  const int64_t slots = std::min<int64_t>(shape.batch * product->pieces(), cpu::GrantedCores());
  const auto copies = CheckedProduct({shape.weights_batch, product->copied_panels(),
                                      product->panel_elements(), int64_t{sizeof(float)}});
  const auto sums = CheckedProduct({slots, product->sums_elements(), int64_t{sizeof(float)}});
  const auto bytes = copies && sums ? CheckedAdd(*copies, *sums) : std::nullopt;
  if (!bytes) return Unimplemented("the copied weights overflow a size");
  PrimitiveInfo info = WithCode(InfoOf(request), *product);
  info.scratchpad_bytes = *bytes;
  return std::make_unique<Tiles>(std::move(info), one, slots, std::move(product));
}

}  // namespace tilewire::matmul
