// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: convolution.h's formula as plain loops, any layout. One output
// after the other; f32 products are added in the order of input channel, depth, height, width; sums
// of integers are exact, modulo 2^32.
#include <algorithm>
#include <array>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/kernels/tiles/scalar_epilogue.h"
#include "engine/memory/bf16_number.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/pooled_destination.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::convolution {
namespace {

// A tap of one output element: what it adds to the offsets of src and of weights.
struct Tap {
  int64_t src;
  int64_t weights;
};

// At most so many taps are held at once.
constexpr int64_t kTapsHeld = 64;
using HeldTaps = std::array<Tap, kTapsHeld>;

// Immutable.
class Formula {
 public:
  Formula(const ConvolutionDesc& desc, const MemoryDesc& written, const Attributes& attributes)
      : geometry_(GeometryOf(desc)),
        first_(5 - desc.src.rank()),
        src_type_(desc.src.data_type()),
        pools_(attributes.post_ops.HasMaxPooling()),
        has_range_(!desc.range.IsZero()),
        range_offset_(has_range_ ? desc.range.offset0() : 0),
        weights_zero_point_(static_cast<uint32_t>(desc.weights_zero_point)),
        epilogue_{attributes, desc.bias.data_type(), desc.dst.data_type()},
        src_(desc.src),
        weights_(desc.weights),
        bias_(desc.bias),
        dst_(written) {
    epilogue_.attributes.post_ops = attributes.post_ops.WithoutMaxPooling();
  }

  // The element `index` of what is written; its channels are counted over all groups.
  void RunElement(const ReferencePiece& piece, const Dims& index) const {
    const int64_t n = index[0], oc = index[1];
    const void* bias = piece.Find(kArgBias);
    const int64_t bias_index = epilogue_.bias_type == DataType::kUndef ? 0 : bias_.Offset({oc});
    void* dst = piece.Find(kArgDst);
    Spatial o = {0, 0, 0};
    for (int d = first_; d < 3; ++d) o[d] = index[2 + d - first_];
    if (has_range_) {
      const float before = epilogue_.attributes.post_ops.HasSum()
                               ? LoadElement(epilogue_.dst_type, dst, dst_.Offset(index))
                               : 0;
      const float value = epilogue_.ScaledValue(
          Sum(piece, n, oc, o), piece.Get<const float>(kArgQuantizationRange)[range_offset_], oc,
          bias, bias_index, before);
      return StoreElement(epilogue_.dst_type, value, dst, dst_.Offset(index));
    }
    if (!pools_) {
      return epilogue_.Store(Sum(piece, n, oc, o), oc, bias, bias_index, dst, dst_.Offset(index));
    }
    const auto value_at = [&](const Spatial& at) {
      return epilogue_.Value(Sum(piece, n, oc, at), oc, bias, bias_index, /*before=*/0);
    };
    StoreElement(epilogue_.dst_type, Pool(o, value_at), dst, dst_.Offset(index));
  }

  Dims ProductsPerElement() const {
    constexpr int64_t kWindow = MaxPoolingPostOp::kSize * MaxPoolingPostOp::kSize;
    const Spatial& kernel = geometry_.kernel;
    return {pools_ ? kWindow : 1, geometry_.ic, kernel[0], kernel[1], kernel[2]};
  }

 private:
  // The maximum of the values in window `o` of height and width.
  template <typename ValueAt>
  static float Pool(const Spatial& o, ValueAt value_at) {
    constexpr int64_t kSize = MaxPoolingPostOp::kSize;
    float highest = -std::numeric_limits<float>::infinity();
    for (int64_t tap = 0; tap < kSize * kSize; ++tap) {
      const float value = value_at({0, o[1] * kSize + tap / kSize, o[2] * kSize + tap % kSize});
      // A NaN, once seen, stays: it compares false.
      highest = value <= highest || highest != highest ? highest : value;
    }
    return highest;
  }

  float Sum(const ReferencePiece& piece, int64_t n, int64_t oc, const Spatial& o) const {
    switch (src_type_) {
      case DataType::kU8:
        return static_cast<int32_t>(Accumulate<uint8_t, int8_t, uint32_t>(
            piece, n, oc, o, ZeroPoint(piece), weights_zero_point_));
      case DataType::kS8:
        return static_cast<int32_t>(Accumulate<int8_t, int8_t, uint32_t>(piece, n, oc, o));
      case DataType::kBf16:
        return Accumulate<Bf16Number, float, float>(piece, n, oc, o);
      default:
        return Accumulate<float, float, float>(piece, n, oc, o);
    }
  }

  uint32_t ZeroPoint(const ReferencePiece& piece) const {
    if (!has_range_) return 0;
    return static_cast<uint32_t>(piece.Get<const float>(kArgQuantizationRange)[range_offset_ + 1]);
  }

  template <typename Src, typename Weights, typename Result>
  Result Accumulate(const ReferencePiece& piece, int64_t n, int64_t oc, const Spatial& o,
                    Result zero_point = 0, Result weights_zero_point = 0) const {
    const int64_t group = oc / geometry_.oc;
    const int weights_group = geometry_.grouped_weights ? 1 : 0;
    const Src* src = piece.Get<const Src>(kArgSrc) + src_.base() + src_.At(0, n);
    const Weights* weights = piece.Get<const Weights>(kArgWeights) + weights_.base() +
                             weights_.At(weights_group, oc % geometry_.oc);
    if (weights_group == 1) weights += weights_.At(0, group);
    const TapWindow window = WindowAt(o);
    HeldTaps taps;
    Result sum = 0;
    threading::StopCheck stopped;
    for (int64_t ic = 0; ic < geometry_.ic && !stopped(); ++ic) {
      const Src* s = src + src_.At(1, group * geometry_.ic + ic);
      const Weights* w = weights + weights_.At(weights_group + 1, ic);
      for (int64_t first = 0; first < window.count && !stopped(); first += kTapsHeld) {
        const int64_t held = std::min(kTapsHeld, window.count - first);
        if (ic == 0 || window.count > kTapsHeld) HoldTaps(o, window, first, held, &taps);
        for (int64_t i = 0; i < held; ++i) {
          sum += (s[taps[i].src] - zero_point) * (w[taps[i].weights] - weights_zero_point);
        }
      }
    }
    return sum;
  }

  // The taps of an output that meet a pixel.
  struct TapWindow {
    Spatial begin, size;
    int64_t count;
  };

  TapWindow WindowAt(const Spatial& o) const {
    TapWindow window;
    window.count = 1;
    for (int d = 0; d < 3; ++d) {
      const TapRange valid = ValidTaps(geometry_, d, o[d]);
      window.begin[d] = valid.begin;
      window.size[d] = std::max<int64_t>(valid.end - valid.begin, 0);
      window.count *= window.size[d];
    }
    return window;
  }

  // The taps [first, first + count) of output `o`, counted in the order of depth, height, width.
  void HoldTaps(const Spatial& o, const TapWindow& window, int64_t first, int64_t count,
                HeldTaps* taps) const {
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = first + i;
      Spatial k, in;
      for (int d = 2; d >= 0; --d) {
        k[d] = window.begin[d] + rest % window.size[d];
        in[d] = o[d] * geometry_.stride[d] + k[d] * geometry_.tap_step[d] - geometry_.pad[d];
        rest /= window.size[d];
      }
      (*taps)[i] = {At(src_, 2, in), At(weights_, geometry_.grouped_weights ? 3 : 2, k)};
    }
  }

  // The offset that the spatial index adds in a tensor whose spatial dimensions start at `first`.
  int64_t At(const SeparableOffsets& offsets, int first, const Spatial& index) const {
    int64_t offset = 0;
    for (int d = first_; d < 3; ++d) offset += offsets.At(first + d - first_, index[d]);
    return offset;
  }

  const Geometry geometry_;
  const int first_;  // of depth, height, width, the first that the tensors have
  const DataType src_type_;
  const bool pools_, has_range_;
  const int64_t range_offset_;
  const uint32_t weights_zero_point_;
  ScalarEpilogue epilogue_;  // of the chain before the pooling
  const SeparableOffsets src_, weights_, bias_, dst_;
};

// f32, with src and dst of f32 or bf16.
absl::Status RequireReal(const ConvolutionDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireF32OrBf16(desc));
  ABSL_RETURN_IF_ERROR(RequireF32(desc.weights));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  return RequireDirect(desc);
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveReference(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(IsInteger(desc) ? RequireInteger(desc)
                                       : RequireReal(desc, request.attributes));
  return WithPlainTensors(desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  ConvolutionDesc written = desc;
  ABSL_ASSIGN_OR_RETURN(written.dst, WrittenDst(desc.dst, request.attributes));
  Formula formula(desc, written.dst, request.attributes);
  ReferenceLoop loop = {written.dst.dims(), formula.ProductsPerElement()};
  const auto compute = [formula = std::move(formula)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) { formula.RunElement(piece, index); });
  };
  return CreateReferencePrimitive(InfoOf(request.With(written)), std::move(loop), compute);
}

}  // namespace tilewire::convolution
