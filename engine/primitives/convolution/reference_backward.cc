// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of the gradients: convolution.h's formulas as plain loops, any
// layout, one element of a gradient after the other. Sums are in double and are rounded once.
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::convolution {
namespace {

// The place of a spatial index in a tensor whose spatial dimensions begin with `first`.
class SpatialOffsets {
 public:
  SpatialOffsets(const MemoryDesc& desc, int first)
      : offsets_(desc), first_(first), skipped_(3 - (desc.rank() - first)) {}

  int64_t At(const Spatial& index) const {
    int64_t offset = 0;
    for (int d = skipped_; d < 3; ++d) offset += offsets_.At(first_ + d - skipped_, index[d]);
    return offset;
  }
  const SeparableOffsets& all() const { return offsets_; }

 private:
  const SeparableOffsets offsets_;
  const int first_, skipped_;  // the first of the spatial dimensions, and those that are missing
};

// The spatial part of an index, whose dimensions begin with `first`.
Spatial SpatialOf(const Dims& index, int first) {
  Spatial spatial{0, 0, 0};
  const int count = static_cast<int>(index.size()) - first;
  for (int i = 0; i < count; ++i) spatial[3 - count + i] = index[first + i];
  return spatial;
}

// The tensors that the formulas of both gradients read. Immutable.
class Tensors {
 public:
  explicit Tensors(const ConvolutionDesc& desc)
      : geometry(GeometryOf(desc)),
        group_dims(geometry.grouped_weights ? 1 : 0),
        src(desc.src, 2),
        weights(desc.weights, group_dims + 2),
        dst(desc.dst, 2) {}

  // Where output channel `oc`, counted over all groups, and input channel `ic` of its group begin.
  int64_t WeightsAt(int64_t oc, int64_t ic) const {
    const SeparableOffsets& at = weights.all();
    const int64_t group = group_dims == 1 ? at.At(0, oc / geometry.oc) : 0;
    return at.base() + group + at.At(group_dims, oc % geometry.oc) + at.At(group_dims + 1, ic);
  }
  int64_t SrcAt(int64_t n, int64_t channel) const {
    return src.all().base() + src.all().At(0, n) + src.all().At(1, channel);
  }
  int64_t DstAt(int64_t n, int64_t channel) const {
    return dst.all().base() + dst.all().At(0, n) + dst.all().At(1, channel);
  }

  const Geometry geometry;
  const int group_dims;
  const SpatialOffsets src, weights, dst;
};

// A tap that reads a pixel of src, and the output for which it does.
struct Reader {
  int64_t tap, output;
};

// Along dimension d, in the order of taps.
std::vector<Reader> ReadersOf(const Geometry& geometry, int d, int64_t pixel) {
  std::vector<Reader> readers;
  for (int64_t tap = 0; tap < geometry.kernel[d]; ++tap) {
    const int64_t first = pixel + geometry.pad[d] - tap * geometry.tap_step[d];
    if (first < 0 || first % geometry.stride[d] != 0) continue;
    const int64_t output = first / geometry.stride[d];
    if (output < geometry.out[d]) readers.push_back({tap, output});
  }
  return readers;
}

// Immutable.
class GradientOfSrc {
 public:
  GradientOfSrc(const ConvolutionDesc& desc, const PostOps& post_ops)
      : tensors_(desc), end_(post_ops), masks_(post_ops.Mask() != nullptr) {}

  void Run(const ReferencePiece& piece) const {
    std::vector<Reader> readers[3];
    Spatial at{-1, -1, -1};
    piece.ForEach([&](const Dims& index) {
      const Spatial pixel = SpatialOf(index, 2);
      for (int d = 0; d < 3; ++d) {
        if (at[d] != pixel[d]) readers[d] = ReadersOf(tensors_.geometry, d, pixel[d]);
      }
      at = pixel;
      const int64_t place = tensors_.SrcAt(index[0], index[1]) + tensors_.src.At(pixel);
      const auto sum = static_cast<float>(Sum(piece, index[0], index[1], readers));
      float& gradient = piece.Get<float>(kArgDiffSrc)[place];
      const float* const mask = masks_ ? piece.Get<const float>(kArgSrc1) + place : nullptr;
      gradient = end_.Apply(sum, gradient, mask);
    });
  }

 private:
  double Sum(const ReferencePiece& piece, int64_t n, int64_t channel,
             const std::vector<Reader> (&readers)[3]) const {
    const Geometry& geometry = tensors_.geometry;
    const int64_t group = channel / geometry.ic;
    double sum = 0;
    threading::StopCheck stopped;
    for (int64_t oc = group * geometry.oc; oc < (group + 1) * geometry.oc && !stopped(); ++oc) {
      const float* const dst = piece.Get<const float>(kArgDiffDst) + tensors_.DstAt(n, oc);
      const float* const weights =
          piece.Get<const float>(kArgWeights) + tensors_.WeightsAt(oc, channel % geometry.ic);
      for (const Reader& d : readers[0]) {
        for (const Reader& h : readers[1]) {
          for (const Reader& w : readers[2]) {
            sum += static_cast<double>(dst[tensors_.dst.At({d.output, h.output, w.output})]) *
                   weights[tensors_.weights.At({d.tap, h.tap, w.tap})];
          }
        }
      }
    }
    return sum;
  }

  const Tensors tensors_;
  const GradientEnd end_;
  const bool masks_;
};

// Immutable.
class GradientOfWeights {
 public:
  GradientOfWeights(const ConvolutionDesc& desc, const PostOps& post_ops)
      : tensors_(desc), end_(post_ops), has_bias_(!desc.bias.IsZero()), bias_(desc.bias) {}

  // The gradient of an output channel's bias is computed with that of its first weight.
  void Run(const ReferencePiece& piece) const {
    const int group_dims = tensors_.group_dims;
    piece.ForEach([&](const Dims& index) {
      const int64_t group = group_dims == 1 ? index[0] : 0;
      const int64_t oc = group * tensors_.geometry.oc + index[group_dims];
      const int64_t ic = index[group_dims + 1];
      const Spatial tap = SpatialOf(index, group_dims + 2);
      const auto sum = static_cast<float>(Sum(piece, oc, ic, tap));
      float& gradient =
          piece.Get<float>(kArgDiffWeights)[tensors_.WeightsAt(oc, ic) + tensors_.weights.At(tap)];
      gradient = end_.Apply(sum, gradient, nullptr);
      if (!has_bias_ || ic != 0 || tap != Spatial{0, 0, 0}) return;
      float& bias = piece.Get<float>(kArgDiffBias)[bias_.Offset({oc})];
      bias = end_.Apply(static_cast<float>(SumOfOutputs(piece, oc)), bias, nullptr);
    });
  }

 private:
  double Sum(const ReferencePiece& piece, int64_t oc, int64_t ic, const Spatial& tap) const {
    const Geometry& geometry = tensors_.geometry;
    const int64_t channel = oc / geometry.oc * geometry.ic + ic;
    double sum = 0;
    ForEachOutput([&](int64_t n, const Spatial& o) {
      Spatial from;
      for (int d = 0; d < 3; ++d) {
        from[d] = o[d] * geometry.stride[d] + tap[d] * geometry.tap_step[d] - geometry.pad[d];
        if (from[d] < 0 || from[d] >= geometry.in[d]) return;
      }
      sum += static_cast<double>(DiffDst(piece, n, oc, o)) *
             piece.Get<const float>(kArgSrc)[tensors_.SrcAt(n, channel) + tensors_.src.At(from)];
    });
    return sum;
  }

  double SumOfOutputs(const ReferencePiece& piece, int64_t oc) const {
    double sum = 0;
    ForEachOutput([&](int64_t n, const Spatial& o) { sum += DiffDst(piece, n, oc, o); });
    return sum;
  }

  float DiffDst(const ReferencePiece& piece, int64_t n, int64_t oc, const Spatial& o) const {
    return piece.Get<const float>(kArgDiffDst)[tensors_.DstAt(n, oc) + tensors_.dst.At(o)];
  }

  template <typename Visit>
  void ForEachOutput(const Visit& visit) const {
    const Geometry& geometry = tensors_.geometry;
    const Spatial& out = geometry.out;
    ForEachOperation({geometry.batch, out[0], out[1], out[2]}, [&](const Dims& index) {
      visit(index[0], Spatial{index[1], index[2], index[3]});
    });
  }

  const Tensors tensors_;
  const GradientEnd end_;
  const bool has_bias_;
  const SeparableOffsets bias_;
};

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveReferenceBackward(const Request<ConvolutionDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireDirectF32(request.desc, request.attributes));
  return WithPlainTensors(request.desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const PostOps& post_ops = request.attributes.post_ops;
  const Geometry geometry = GeometryOf(desc);
  const Spatial &kernel = geometry.kernel, &out = geometry.out;
  if (desc.prop_kind == PropKind::kBackwardData) {
    return CreateReferencePrimitive(
        GradientInfoOf(request), {desc.src.dims(), {geometry.oc, kernel[0], kernel[1], kernel[2]}},
        [formula = GradientOfSrc(desc, post_ops)](const ReferencePiece& piece) {
          formula.Run(piece);
        });
  }
  return CreateReferencePrimitive(
      GradientInfoOf(request), {desc.weights.dims(), {geometry.batch, out[0], out[1], out[2]}},
      [formula = GradientOfWeights(desc, post_ops)](const ReferencePiece& piece) {
        formula.Run(piece);
      });
}

}  // namespace tilewire::convolution
