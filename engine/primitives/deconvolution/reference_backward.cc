// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of the gradients: deconvolution.h's formulas as plain loops, any
// layout, one element of a gradient after the other. Sums are in double and are rounded once.
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::deconvolution {
namespace {

// The tensors that the formulas of both gradients read. Immutable.
class Tensors {
 public:
  explicit Tensors(const DeconvolutionDesc& desc)
      : geometry(GeometryOf(desc)),
        group_dims(geometry.grouped_weights ? 1 : 0),
        spatial(desc.src.rank() - 2),
        axes(&geometry.axes[3 - spatial]),
        src(desc.src),
        weights(desc.weights),
        dst(desc.dst) {}
  Tensors(const Tensors& other) : Tensors(other, other.geometry) {}

  // Sets the spatial part of `to`, an index of dst, to what the pixel of src reaches by the tap:
  // dimensions of the latter begin with `first_pixel` and `first_tap`. False if it lies outside.
  bool Reach(const Dims& pixel, int first_pixel, const Dims& tap, int first_tap, Dims* to) const {
    for (int i = 0; i < spatial; ++i) {
      const Axis& axis = axes[i];
      const int64_t o =
          pixel[first_pixel + i] * axis.stride + tap[first_tap + i] * axis.tap_step - axis.pad;
      if (o < 0 || o >= axis.out) return false;
      (*to)[2 + i] = o;
    }
    return true;
  }

  // Sizes along the spatial dimensions, after `first`.
  Dims Box(Dims first, int64_t Axis::*size) const {
    for (int i = 0; i < spatial; ++i) first.push_back(axes[i].*size);
    return first;
  }

  const Geometry geometry;
  const int group_dims, spatial;
  const Axis* const axes;
  const SeparableOffsets src, weights, dst;

 private:
  Tensors(const Tensors& other, const Geometry& its)
      : geometry(its),
        group_dims(other.group_dims),
        spatial(other.spatial),
        axes(&geometry.axes[3 - spatial]),
        src(other.src),
        weights(other.weights),
        dst(other.dst) {}
};

// Immutable.
class GradientOfSrc {
 public:
  GradientOfSrc(const DeconvolutionDesc& desc, const PostOps& post_ops)
      : tensors_(desc), end_(post_ops), masks_(post_ops.Mask() != nullptr) {}

  Dims ProductsPerElement() const { return tensors_.Box({tensors_.geometry.oc}, &Axis::kernel); }

  void Run(const ReferencePiece& piece) const {
    piece.ForEach([&](const Dims& index) {
      const int64_t at = tensors_.src.Offset(index);
      float& gradient = piece.Get<float>(kArgDiffSrc)[at];
      const float* const mask = masks_ ? piece.Get<const float>(kArgSrc1) + at : nullptr;
      gradient = end_.Apply(static_cast<float>(Sum(piece, index)), gradient, mask);
    });
  }

 private:
  double Sum(const ReferencePiece& piece, const Dims& index) const {
    const Geometry& geometry = tensors_.geometry;
    const int group_dims = tensors_.group_dims;
    const int64_t group = index[1] / geometry.ic;
    Dims to = index, at(group_dims + 2 + tensors_.spatial, 0);
    if (group_dims == 1) at[0] = group;
    at[group_dims + 1] = index[1] % geometry.ic;
    double sum = 0;
    ForEachOperation(ProductsPerElement(), [&](const Dims& product) {
      if (!tensors_.Reach(index, 2, product, 1, &to)) return;
      to[1] = group * geometry.oc + product[0];
      at[group_dims] = product[0];
      for (int i = 0; i < tensors_.spatial; ++i) at[group_dims + 2 + i] = product[1 + i];
      sum += static_cast<double>(piece.Get<const float>(kArgDiffDst)[tensors_.dst.Offset(to)]) *
             piece.Get<const float>(kArgWeights)[tensors_.weights.Offset(at)];
    });
    return sum;
  }

  const Tensors tensors_;
  const GradientEnd end_;
  const bool masks_;
};

// Immutable.
class GradientOfWeights {
 public:
  GradientOfWeights(const DeconvolutionDesc& desc, const PostOps& post_ops)
      : tensors_(desc), end_(post_ops), has_bias_(!desc.bias.IsZero()), bias_(desc.bias) {}

  Dims ProductsPerElement() const { return tensors_.Box({tensors_.geometry.batch}, &Axis::in); }

  // The gradient of an output channel's bias is computed with that of its first weight.
  void Run(const ReferencePiece& piece) const {
    piece.ForEach([&](const Dims& index) {
      float& gradient = piece.Get<float>(kArgDiffWeights)[tensors_.weights.Offset(index)];
      gradient = end_.Apply(static_cast<float>(Sum(piece, index)), gradient, nullptr);
      if (!has_bias_ || !IsFirstOfOutput(index)) return;
      const int64_t oc = OutputOf(index);
      float& bias = piece.Get<float>(kArgDiffBias)[bias_.Offset({oc})];
      bias = end_.Apply(static_cast<float>(SumOfOutputs(piece, oc)), bias, nullptr);
    });
  }

 private:
  int64_t OutputOf(const Dims& index) const {
    const int64_t group = tensors_.group_dims == 1 ? index[0] : 0;
    return group * tensors_.geometry.oc + index[tensors_.group_dims];
  }

  bool IsFirstOfOutput(const Dims& index) const {
    for (size_t d = tensors_.group_dims + 1; d < index.size(); ++d) {
      if (index[d] != 0) return false;
    }
    return true;
  }

  double Sum(const ReferencePiece& piece, const Dims& index) const {
    const Geometry& geometry = tensors_.geometry;
    const int group_dims = tensors_.group_dims;
    Dims from(2 + tensors_.spatial), to(2 + tensors_.spatial);
    to[1] = OutputOf(index);
    from[1] = to[1] / geometry.oc * geometry.ic + index[group_dims + 1];
    double sum = 0;
    ForEachOperation(ProductsPerElement(), [&](const Dims& product) {
      if (!tensors_.Reach(product, 1, index, group_dims + 2, &to)) return;
      from[0] = to[0] = product[0];
      for (int i = 0; i < tensors_.spatial; ++i) from[2 + i] = product[1 + i];
      sum += static_cast<double>(piece.Get<const float>(kArgDiffDst)[tensors_.dst.Offset(to)]) *
             piece.Get<const float>(kArgSrc)[tensors_.src.Offset(from)];
    });
    return sum;
  }

  double SumOfOutputs(const ReferencePiece& piece, int64_t oc) const {
    double sum = 0;
    Dims to(2 + tensors_.spatial);
    to[1] = oc;
    ForEachOperation(tensors_.Box({tensors_.geometry.batch}, &Axis::out), [&](const Dims& output) {
      to[0] = output[0];
      for (int i = 0; i < tensors_.spatial; ++i) to[2 + i] = output[1 + i];
      sum += piece.Get<const float>(kArgDiffDst)[tensors_.dst.Offset(to)];
    });
    return sum;
  }

  const Tensors tensors_;
  const GradientEnd end_;
  const bool has_bias_;
  const SeparableOffsets bias_;
};

}  // namespace

absl::StatusOr<DeconvolutionDesc> ResolveReferenceBackward(
    const Request<DeconvolutionDesc>& request) {
  return ResolvePlainF32(request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<DeconvolutionDesc>& request) {
  const DeconvolutionDesc& desc = request.desc;
  const auto create = [&](const Dims& results, const auto& formula) {
    return CreateReferencePrimitive(GradientInfoOf(request),
                                    {results, formula.ProductsPerElement()},
                                    [formula](const ReferencePiece& piece) { formula.Run(piece); });
  };
  if (desc.prop_kind == PropKind::kBackwardData)
    return create(desc.src.dims(), GradientOfSrc(desc, request.attributes.post_ops));
  return create(desc.weights.dims(), GradientOfWeights(desc, request.attributes.post_ops));
}

}  // namespace tilewire::deconvolution
