// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: deconvolution.h's formula as plain loops, f32, any layout. One
// output after the other; its products are added in the order of input channel, depth, height,
// width.
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/tiles/scalar_epilogue.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::deconvolution {
namespace {

// The elements that one output reads along each spatial dimension. A table of all outputs would be
// many times as large as the tensors.
class Sources {
 public:
  Sources(const Geometry& geometry, int spatial)
      : axes_(&geometry.axes[3 - spatial]), at_(spatial, -1), sources_(spatial) {}

  void MoveTo(const Dims& index) {
    for (size_t i = 0; i < at_.size(); ++i) {
      if (at_[i] == index[i + 2]) continue;
      at_[i] = index[i + 2];
      sources_[i] = axes_[i].SourcesOf(at_[i]);
    }
  }
  const std::vector<std::vector<Source>>& operator*() const { return sources_; }

 private:
  const Axis* const axes_;
  Dims at_;
  std::vector<std::vector<Source>> sources_;
};

// Immutable.
class Formula {
 public:
  Formula(const DeconvolutionDesc& desc, const PostOps& post_ops)
      : geometry_(GeometryOf(desc)),
        desc_(desc),
        post_ops_(post_ops),
        src_(desc.src),
        weights_(desc.weights),
        bias_(desc.bias),
        dst_(desc.dst) {}

  void Run(const ReferencePiece& piece) const {
    Sources sources(geometry_, desc_.src.rank() - 2);
    piece.ForEach([&](const Dims& index) {
      sources.MoveTo(index);
      float value = Sum(piece, index, *sources);
      if (!desc_.bias.IsZero()) value += piece.Get<const float>(kArgBias)[bias_.Offset({index[1]})];
      float& result = piece.Get<float>(kArgDst)[dst_.Offset(index)];
      result = ApplyPostOps(post_ops_, value, result);
    });
  }

 private:
  float Sum(const ReferencePiece& piece, const Dims& index,
            const std::vector<std::vector<Source>>& sources) const {
    const int group_dims = geometry_.grouped_weights ? 1 : 0;
    const int64_t group = index[1] / geometry_.oc;
    Dims taps, from = index, at(desc_.weights.rank(), 0);
    for (const std::vector<Source>& line : sources) taps.push_back(line.size());
    if (group_dims == 1) at[0] = group;
    at[group_dims] = index[1] % geometry_.oc;
    float sum = 0;
    ForEachOperation(geometry_.ic, [&](int64_t ic) {
      from[1] = group * geometry_.ic + ic;
      at[group_dims + 1] = ic;
      ForEachOperation(taps, [&](const Dims& tap) {
        for (size_t i = 0; i < sources.size(); ++i) {
          const Source& source = sources[i][tap[i]];
          from[i + 2] = source.position;
          at[group_dims + 2 + i] = source.tap;
        }
        sum += piece.Get<const float>(kArgSrc)[src_.Offset(from)] *
               piece.Get<const float>(kArgWeights)[weights_.Offset(at)];
      });
    });
    return sum;
  }

  const Geometry geometry_;
  const DeconvolutionDesc desc_;
  const PostOps post_ops_;
  const SeparableOffsets src_, weights_, bias_, dst_;
};

}  // namespace

absl::StatusOr<DeconvolutionDesc> ResolveReference(const Request<DeconvolutionDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireForwardF32(request.desc, request.attributes));
  return WithPlainTensors(request.desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<DeconvolutionDesc>& request) {
  const DeconvolutionDesc& desc = request.desc;
  const Geometry geometry = GeometryOf(desc);
  Dims products = {geometry.ic};  // of an output, at most
  for (const Axis& axis : geometry.axes) products.push_back(DivUp(axis.kernel, axis.stride));
  const auto compute = [formula = Formula(desc, request.attributes.post_ops)](
                           const ReferencePiece& piece) { formula.Run(piece); };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims(), products}, compute);
}

}  // namespace tilewire::deconvolution
