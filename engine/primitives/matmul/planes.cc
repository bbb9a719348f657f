// SPDX-License-Identifier: Apache-2.0
//
// The f32 matrix product by planes of bf16 on matrix tiles.
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/planes/plane_product.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/batches.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/primitives/plane_primitive.h"

namespace tilewire::matmul {
namespace {

constexpr int64_t kElementBytes = sizeof(float);

// Weights are split in every run, for any number of rows. Where they fill the second cache, rows
// are the images of a batch as often as anything else, and the layer is bound by memory: for 8
// images, 25088 inputs and 4096 outputs six products take 170 ms, the weights alone 30.
constexpr int64_t kMostWeights = int64_t{1} << 19;

// The rows of src of each product.
class BatchRows final : public PlaneRows {
 public:
  using Layout = MatmulDesc;

  BatchRows(const Layout& desc, const std::byte* src)
      : desc_(desc), src_(reinterpret_cast<const float*>(src)) {}

  void ForEachRun(int64_t product, int64_t row, int rows, int64_t,
                  absl::FunctionRef<void(const Run&)> visit) const override {
    const int64_t stride = StrideOf(desc_.src, 1);
    const float* from = src_ + BatchOffset(desc_, desc_.src, product) + row * stride;
    visit({.first = 0,
           .rows = rows,
           .src = reinterpret_cast<const std::byte*>(from),
           .row_bytes = stride * kElementBytes});
  }

 private:
  const MatmulDesc& desc_;
  const float* const src_;
};

}  // namespace

absl::StatusOr<MatmulDesc> ResolvePlanes(const Request<MatmulDesc>& request) {
  constexpr int64_t kFewestProducts = 32, kMostProducts = 1 << 16, kFewestColumns = 16;
  ABSL_ASSIGN_OR_RETURN(MatmulDesc resolved, ResolveTiles(request));
  const Shape shape = ShapeOf(resolved);
  if (shape.k < kFewestProducts || shape.k > kMostProducts || shape.n < kFewestColumns)
    return Unimplemented("is for K from 32 to 65536 and N from 16 on");
  if (request.facts.traits.precision == Precision::kExact && shape.k * shape.n > kMostWeights)
    return Unimplemented("splits weights of that size longer than a few rows take without");
  if (resolved.dst.ElementCount() == 0) return Unimplemented("nothing to compute");
  if (StrideOf(resolved.src, 0) != 1)
    return Unimplemented("elements of a row of src do not follow each other");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlanes(const Request<MatmulDesc>& request) {
  const MatmulDesc& desc = request.desc;
  const Shape matrices = ShapeOf(desc);
  PlaneProductShape shape = {.planes = PlanesFor(request.facts.traits.precision),
                             .rows = matrices.m,
                             .channels = matrices.k,
                             .outputs = matrices.n};
  shape.weights_channel = StrideOf(desc.weights, 1) * kElementBytes;
  shape.weights_block = kPlaneLanes * shape.weights_channel;
  shape.weights_output = StrideOf(desc.weights, 0) * kElementBytes;
  shape.weights_output_block = kPlaneLanes * shape.weights_output;
  shape.weights_are_padded = false;
  shape.dst_row = StrideOf(desc.dst, 1) * kElementBytes;
  shape.bias = !desc.bias.IsZero();
  shape.post_ops = request.attributes.post_ops;
  std::vector<PlaneWeights> weights;
  for (int64_t w = 0; w < matrices.weights_batch; ++w)
    weights.push_back({.offset = WeightsOffset(desc, w) * kElementBytes});
  std::vector<PlaneProduct::Item> items;
  for (int64_t b = 0; b < matrices.batch; ++b)
    items.push_back({.product = b,
                     .weights = WeightsOf(desc, b),
                     .dst = BatchOffset(desc, desc.dst, b) * kElementBytes});
  ABSL_ASSIGN_OR_RETURN(auto product, PlaneProduct::Create(request.facts.name, shape,
                                                           std::move(weights), std::move(items)));
  return MakePlanePrimitive<BatchRows>(InfoOf(request), desc, std::move(product));
}

}  // namespace tilewire::matmul
