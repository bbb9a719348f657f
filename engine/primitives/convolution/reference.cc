// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: convolution.h's formula as plain loops, any layout. One output
// after the other; f32 products are added in the order of input channel, depth, height, width; sums
// of integers are exact, modulo 2^32.
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/element_conversion.h"
#include "engine/kernels/scalar_epilogue.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/pooled_destination.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/layout.h"

namespace tilewire::convolution {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const ConvolutionDesc& desc, const Attributes& attributes)
      : Primitive(std::move(info)),
        geometry_(GeometryOf(desc)),
        first_(5 - desc.src.rank()),
        width_(desc.src.rank() - 1),
        src_type_(desc.src.data_type()),
        pools_(attributes.post_ops.HasMaxPooling()),
        epilogue_{attributes, desc.bias.data_type(), desc.dst.data_type()},
        src_(desc.src),
        weights_(desc.weights),
        bias_(desc.bias),
        dst_(Desc(kArgDst)) {
    epilogue_.attributes.post_ops = attributes.post_ops.WithoutMaxPooling();
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const int64_t channels = geometry_.groups * geometry_.oc;
    team.ParallelFor(geometry_.batch * channels,
                     [&](int64_t i) { RunChannel(args, i / channels, i % channels); });
    ZeroPadding(Desc(kArgDst), args.Find(kArgDst));
  }

  // All outputs of channel `oc` (counted over all groups) of image `n`.
  void RunChannel(const ExecuteArgs& args, int64_t n, int64_t oc) const {
    const void* bias = args.Find(kArgBias);
    const int64_t bias_index = has_bias() ? bias_.Offset({oc}) : 0;
    void* dst = args.Find(kArgDst);
    const int64_t channel = dst_.base() + dst_.At(0, n) + dst_.At(1, oc);
    if (pools_) return PoolChannel(args, n, oc, channel);
    const Spatial& out = geometry_.out;
    for (int64_t od = 0; od < out[0]; ++od) {
      for (int64_t oh = 0; oh < out[1]; ++oh) {
        for (int64_t ow = 0; ow < out[2]; ++ow) {
          epilogue_.Store(Sum(args, n, oc, {od, oh, ow}), oc, bias, bias_index, dst,
                          channel + At(dst_, 2, {od, oh, ow}));
        }
      }
    }
  }

  // The same with a maximum over the windows of height and width; `channel` is where dst's begins.
  void PoolChannel(const ExecuteArgs& args, int64_t n, int64_t oc, int64_t channel) const {
    constexpr int64_t kSize = MaxPoolingPostOp::kSize;
    const void* bias = args.Find(kArgBias);
    const int64_t bias_index = has_bias() ? bias_.Offset({oc}) : 0;
    for (int64_t row = 0; row < geometry_.out[1] / kSize; ++row) {
      for (int64_t column = 0; column < geometry_.out[2] / kSize; ++column) {
        float highest = -std::numeric_limits<float>::infinity();
        for (int64_t tap = 0; tap < kSize * kSize; ++tap) {
          const Spatial o = {0, row * kSize + tap / kSize, column * kSize + tap % kSize};
          const float value =
              epilogue_.Value(Sum(args, n, oc, o), oc, bias, bias_index, /*before=*/0);
          // A NaN, once seen, stays: it compares false.
          highest = value <= highest || highest != highest ? highest : value;
        }
        StoreElement(epilogue_.dst_type, highest, args.Find(kArgDst),
                     channel + At(dst_, 2, {0, row, column}));
      }
    }
  }

  bool has_bias() const { return epilogue_.bias_type != DataType::kUndef; }

  float Sum(const ExecuteArgs& args, int64_t n, int64_t oc, const Spatial& o) const {
    switch (src_type_) {
      case DataType::kU8:
        return static_cast<int32_t>(Accumulate<uint8_t, int8_t, uint32_t>(args, n, oc, o));
      case DataType::kS8:
        return static_cast<int32_t>(Accumulate<int8_t, int8_t, uint32_t>(args, n, oc, o));
      default:
        return Accumulate<float, float, float>(args, n, oc, o);
    }
  }

  template <typename Src, typename Weights, typename Result>
  Result Accumulate(const ExecuteArgs& args, int64_t n, int64_t oc, const Spatial& o) const {
    const int64_t group = oc / geometry_.oc;
    const int weights_group = geometry_.grouped_weights ? 1 : 0;
    const Src* src = args.Get<const Src>(kArgSrc) + src_.base() + src_.At(0, n);
    const Weights* weights = args.Get<const Weights>(kArgWeights) + weights_.base() +
                             weights_.At(weights_group, oc % geometry_.oc);
    if (weights_group == 1) weights += weights_.At(0, group);
    TapRange taps[3];
    for (int d = 0; d < 3; ++d) taps[d] = ValidTaps(geometry_, d, o[d]);
    Result sum = 0;
    for (int64_t ic = 0; ic < geometry_.ic; ++ic) {
      const Src* s = src + src_.At(1, group * geometry_.ic + ic);
      const Weights* w = weights + weights_.At(weights_group + 1, ic);
      for (int64_t kd = taps[0].begin; kd < taps[0].end; ++kd) {
        for (int64_t kh = taps[1].begin; kh < taps[1].end; ++kh) {
          const Src* row = s + At(src_, 2, {In(0, o[0], kd), In(1, o[1], kh), 0});
          const Weights* tap = w + At(weights_, weights_group + 2, {kd, kh, 0});
          for (int64_t kw = taps[2].begin; kw < taps[2].end; ++kw) {
            sum += row[src_.At(width_, In(2, o[2], kw))] *
                   tap[weights_.At(weights_group + width_, kw)];
          }
        }
      }
    }
    return sum;
  }

  int64_t In(int d, int64_t o, int64_t k) const {
    return o * geometry_.stride[d] + k * geometry_.tap_step[d] - geometry_.pad[d];
  }

  // The offset that the spatial index adds in a tensor whose spatial dimensions start at `first`.
  int64_t At(const SeparableOffsets& offsets, int first, const Spatial& index) const {
    int64_t offset = 0;
    for (int d = first_; d < 3; ++d) offset += offsets.At(first + d - first_, index[d]);
    return offset;
  }

  const Geometry geometry_;
  const int first_;  // of depth, height, width, the first that the tensors have
  const int width_;  // the dimension of src that is its width
  const DataType src_type_;
  const bool pools_;
  ScalarEpilogue epilogue_;  // of the chain before the pooling
  const SeparableOffsets src_, weights_, bias_, dst_;
};

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveReference(const ConvolutionDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(IsInteger(desc) ? RequireInteger(desc) : RequireDirectF32(desc, attributes));
  ConvolutionDesc resolved = desc;
  for (MemoryDesc* tensor : {&resolved.src, &resolved.weights, &resolved.bias, &resolved.dst}) {
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ConvolutionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  ConvolutionDesc written = desc;
  ABSL_ASSIGN_OR_RETURN(written.dst, WrittenDst(desc.dst, attributes));
  return std::make_unique<Reference>(InfoOf(written, attributes, facts), desc, attributes);
}

}  // namespace tilewire::convolution
