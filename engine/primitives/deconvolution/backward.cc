// SPDX-License-Identifier: Apache-2.0
//
// The fast rows of the gradients, both around a convolution in which diff_dst has the place of src,
// and which has the same window and weights, with input and output channels exchanged:
//
//   diff_src       what the convolution computes of diff_dst
//   diff_weights   the gradient of its weights, where src has the place of its diff_dst
//
// The convolution's weights are a view of the deconvolution's: no element moves.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/reordered.h"
#include "engine/primitives/weighted_gradients.h"
#include "engine/threading/stop.h"

namespace tilewire::deconvolution {
namespace {

// Weights [O,I,...] or [G,O/G,I/G,...] with the two dimensions of channels exchanged.
absl::StatusOr<MemoryDesc> Exchanged(const MemoryDesc& weights, int tensor_rank) {
  std::vector<int> order(weights.rank());
  std::iota(order.begin(), order.end(), 0);
  const int channels = weights.rank() - tensor_rank;
  std::swap(order[channels], order[channels + 1]);
  if (weights.format_kind() == FormatKind::kBlocked) return weights.Permuted(order);
  if (!weights.IsAny()) return Unimplemented("weights are ", weights.ToString());
  Dims dims = weights.dims();
  std::swap(dims[channels], dims[channels + 1]);
  return MemoryDesc::CreateAny(std::move(dims), weights.data_type());
}

absl::StatusOr<ConvolutionDesc> ConvolutionOf(const DeconvolutionDesc& desc) {
  ConvolutionDesc inner;
  inner.prop_kind = desc.prop_kind == PropKind::kBackwardData ? PropKind::kForwardInference
                                                              : PropKind::kBackwardWeights;
  inner.algorithm = ConvolutionAlgorithm::kDirect;
  inner.src = desc.dst;
  ABSL_ASSIGN_OR_RETURN(inner.weights, Exchanged(desc.weights, desc.src.rank()));
  inner.dst = desc.src;
  inner.strides = desc.strides;
  inner.dilations = desc.dilations;
  inner.padding_left = desc.padding_left;
  inner.padding_right = desc.padding_right;
  return inner;
}

absl::StatusOr<Candidate<ConvolutionDesc>> FindConvolution(
    const Request<DeconvolutionDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc inner, ConvolutionOf(request.desc));
  const Attributes attributes = WithoutMask(request.attributes);
  return FindInnerRow<ConvolutionDesc>(ConvolutionImplementations(), {inner},
                                       {inner, attributes, request.facts, request.machine});
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateConvolutionInside(
    const Request<DeconvolutionDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const Candidate<ConvolutionDesc> found, FindConvolution(request));
  Attributes inside = WithoutMask(request.attributes);
  inside.scratchpad_mode = ScratchpadMode::kUser;
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<Primitive> inner,
                        found.row->create({found.resolved, inside, *found.row, request.machine}));
  ABSL_RETURN_IF_ERROR(FinishCreation(inside, {}, inner.get()));
  return inner;
}

// The gradient of the bias: of each channel, the sum over an image's pixels in double, rounded, and
// the sum of these in the order of images.
class BiasGradient {
 public:
  BiasGradient(const MemoryDesc& diff_dst, const PostOps& post_ops)
      : offsets_(diff_dst), dims_(diff_dst.dims()), adds_(post_ops.HasSum()) {}

  void Run(const float* diff_dst, float* diff_bias, const threading::Team& team) const {
    team.ParallelFor(DivUp(dims_[1], kChannels), [&](int64_t piece) {
      const int64_t first = piece * kChannels, end = std::min(dims_[1], first + kChannels);
      float sums[kChannels] = {};
      if (adds_) std::copy(diff_bias + first, diff_bias + end, sums);
      for (int64_t image = 0; image < dims_[0] && !threading::Stopped(); ++image)
        AddImage(diff_dst + offsets_.base() + offsets_.At(0, image), first, end, sums);
      std::copy(sums, sums + (end - first), diff_bias + first);
    });
  }

 private:
  static constexpr int64_t kChannels = 16;  // of a piece: neighbours in blocks

  void AddImage(const float* image, int64_t first, int64_t end, float* sums) const {
    int64_t channels[kChannels];
    for (int64_t c = first; c < end; ++c) channels[c - first] = offsets_.At(1, c);
    double of_image[kChannels] = {};
    ForEachPixel([&](int64_t pixel) {
      for (int64_t c = 0; c < end - first; ++c) of_image[c] += image[pixel + channels[c]];
    });
    for (int64_t c = 0; c < end - first; ++c) sums[c] += static_cast<float>(of_image[c]);
  }

  // In row-major order, with the offset of each in its image.
  template <typename Visit>
  void ForEachPixel(const Visit& visit) const {
    const auto rank = static_cast<int>(dims_.size());
    const auto size = [&](int d) { return d < 2 ? 1 : dims_[d]; };
    const auto at = [&](int d, int64_t i) { return d < 2 ? 0 : offsets_.At(d, i); };
    for (int64_t z = 0; z < size(rank - 3); ++z) {
      for (int64_t y = 0; y < size(rank - 2); ++y) {
        const int64_t row = at(rank - 3, z) + at(rank - 2, y);
        for (int64_t x = 0; x < size(rank - 1); ++x) visit(row + at(rank - 1, x));
      }
    }
  }

  const SeparableOffsets offsets_;
  const Dims dims_;
  const bool adds_;
};

// Immutable.
class GradientByConvolution final : public Primitive {
 public:
  GradientByConvolution(PrimitiveInfo info, const DeconvolutionDesc& desc,
                        std::unique_ptr<Primitive> inner, const PostOps& post_ops)
      : Primitive(std::move(info)),
        is_of_src_(desc.prop_kind == PropKind::kBackwardData),
        inner_(std::move(inner)),
        post_ops_(post_ops) {
    if (!desc.bias.IsZero()) bias_.emplace(desc.dst, post_ops);
  }

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    ExecuteArgs inside;
    inside.Set(kArgSrc, args.Find(kArgDiffDst));
    if (is_of_src_) {
      inside.Set(kArgWeights, args.Find(kArgWeights)).Set(kArgDst, args.Find(kArgDiffSrc));
      ExecuteStage(*inner_, inside, scratchpad, team);
      ApplyMask(post_ops_, Desc(kArgDiffSrc), First<const float>(args, kArgSrc1),
                First<float>(args, kArgDiffSrc), team);
      return;
    }
    inside.Set(kArgDiffDst, args.Find(kArgSrc));
    inside.Set(kArgDiffWeights, args.Find(kArgDiffWeights));
    ExecuteStage(*inner_, inside, scratchpad, team);
    if (bias_)
      bias_->Run(args.Get<const float>(kArgDiffDst), First<float>(args, kArgDiffBias), team);
  }

  const bool is_of_src_;
  const std::unique_ptr<const Primitive> inner_;
  const PostOps post_ops_;
  std::optional<BiasGradient> bias_;
};

}  // namespace

absl::StatusOr<DeconvolutionDesc> ResolveBackward(const Request<DeconvolutionDesc>& request) {
  const DeconvolutionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  ABSL_ASSIGN_OR_RETURN(const Candidate<ConvolutionDesc> inner, FindConvolution(request));
  DeconvolutionDesc resolved = desc;
  resolved.dst = inner.resolved.src;
  resolved.src = inner.resolved.dst;
  ABSL_ASSIGN_OR_RETURN(resolved.weights, Exchanged(inner.resolved.weights, desc.src.rank()));
  ABSL_ASSIGN_OR_RETURN(resolved.bias, OrPlain(desc.bias));
  const MemoryDesc& bias = resolved.bias;
  const bool is_dense = bias.IsZero() || (bias.IsPlain() && bias.offset0() == 0 &&
                                          (bias.dim(0) == 1 || bias.stride(0) == 1));
  if (!is_dense) return Unimplemented("bias is not dense");
  ABSL_RETURN_IF_ERROR(RequireMaskable(resolved.src, request.attributes));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackward(
    const Request<DeconvolutionDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<Primitive> inner, CreateConvolutionInside(request));
  PrimitiveInfo info = GradientInfoOf(request);
  info.code_bytes = inner->info().code_bytes;
  info.scratchpad_bytes = inner->info().scratchpad_bytes;
  info.traits.bits_depend_on_position = inner->info().traits.bits_depend_on_position;
  return std::make_unique<GradientByConvolution>(std::move(info), request.desc, std::move(inner),
                                                 request.attributes.post_ops);
}

}  // namespace tilewire::deconvolution
