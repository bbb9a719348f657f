// SPDX-License-Identifier: Apache-2.0
//
// Elements that lie in one order on both sides are converted in runs that the compiler turns into
// vectors; others one by one, along the rows of dst.
#include "engine/runtime/quantize_step.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/zero_padding.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

using graph::QuantizationParams;

// Rounds to the nearest integer, halves to the even one: f32 holds no fraction beyond 2^23.
// |x| <= 2^22.
inline float RoundSmall(float x) {
  constexpr float kNoFraction = 12582912.0f;
  return (x + kNoFraction) - kNoFraction;
}

template <typename To>
struct Quantizing {
  using Src = float;
  using Dst = To;
  explicit Quantizing(const QuantizationParams& params)
      : scale(params.scale),
        zero(params.zero_point),
        lowest(static_cast<float>(std::numeric_limits<To>::lowest() - params.zero_point)),
        highest(static_cast<float>(std::numeric_limits<To>::max() - params.zero_point)) {}
  To operator()(float real) const {
    float scaled = real / scale;
    scaled = scaled > lowest ? scaled : lowest;
    scaled = scaled < highest ? scaled : highest;
    return static_cast<To>(static_cast<int32_t>(RoundSmall(scaled)) + zero);
  }
  float scale;
  int32_t zero;
  float lowest, highest;
};

template <typename From>
struct Dequantizing {
  using Src = From;
  using Dst = float;
  explicit Dequantizing(const QuantizationParams& params)
      : scale(params.scale), zero(static_cast<float>(params.zero_point)) {}
  float operator()(From integer) const { return (static_cast<float>(integer) - zero) * scale; }
  float scale, zero;
};

// Immutable.
template <typename Conversion>
class ConversionStep final : public Primitive {
  using Src = typename Conversion::Src;
  using Dst = typename Conversion::Dst;

 public:
  ConversionStep(PrimitiveInfo info, const std::vector<QuantizationParams>& quantization, int axis,
                 const MemoryDesc& src, const MemoryDesc& dst)
      : Primitive(std::move(info)),
        dst_(dst),
        rows_(dst),
        src_offsets_(src),
        dst_offsets_(dst),
        axis_(quantization.size() == 1 ? kNoAxis : axis),
        flat_(IsFlat(src, dst) && quantization.size() == 1) {
    for (const QuantizationParams& params : quantization) conversions_.emplace_back(params);
    for (int64_t i = 0; i < dst.dim(rows_.inner()); ++i) {
      from_.push_back(src_offsets_.At(rows_.inner(), i));
      to_.push_back(dst_offsets_.At(rows_.inner(), i));
    }
    for (size_t i = 0; i < from_.size(); ++i)
      neighbours_ = neighbours_ && from_[i] - from_[0] == i && to_[i] - to_[0] == i;
  }

 private:
  static constexpr int kNoAxis = -1;
  static constexpr int64_t kElementsAtOnce = 16384;

  // Element i of the one is element i of the other.
  static bool IsFlat(const MemoryDesc& src, const MemoryDesc& dst) {
    const absl::StatusOr<MemoryDesc> as_dst = src.WithDataType(dst.data_type());
    return as_dst.ok() && *as_dst == dst && dst.IsDense() && !dst.HasPadding();
  }

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const Src* src = args.Get<const Src>(kArgSrc);
    Dst* dst = args.Get<Dst>(kArgDst);
    if (flat_) {
      src += src_offsets_.base();
      dst += dst_offsets_.base();
      const int64_t count = dst_.ElementCount();
      team.ParallelFor(DivUp(count, kElementsAtOnce), [&](int64_t part) {
        const int64_t first = part * kElementsAtOnce;
        Convert(conversions_[0], src + first, dst + first,
                std::min(kElementsAtOnce, count - first));
      });
      return;
    }
    rows_.ForEach(team, [&](const Dims& index) {
      ConvertRow(index, src + src_offsets_.Offset(index), dst + dst_offsets_.Offset(index));
    });
    if (dst_.HasPadding()) ZeroPadding(dst_, dst);
  }

  static void Convert(Conversion conversion, const Src* __restrict src, Dst* __restrict dst,
                      int64_t count) {
    constexpr int64_t kAtOnce = 16;  // a number that compilers know makes vectors
    int64_t i = 0;
    for (; i + kAtOnce <= count; i += kAtOnce) {
      for (int64_t k = 0; k < kAtOnce; ++k) dst[i + k] = conversion(src[i + k]);
    }
    for (; i < count; ++i) dst[i] = conversion(src[i]);
  }

  void ConvertRow(const Dims& index, const Src* src, Dst* dst) const {
    const int64_t count = static_cast<int64_t>(to_.size());
    const bool along = axis_ == rows_.inner();
    const Conversion& one = conversions_[axis_ == kNoAxis || along ? 0 : index[axis_]];
    if (neighbours_ && !along) return Convert(one, src, dst, count);
    for (int64_t i = 0; i < count; ++i) {
      const Conversion& conversion = along ? conversions_[i] : one;
      dst[to_[i]] = conversion(src[from_[i]]);
    }
  }

  const MemoryDesc dst_;
  const StepRows rows_;
  const SeparableOffsets src_offsets_, dst_offsets_;
  const int axis_;
  const bool flat_;
  std::vector<Conversion> conversions_;  // one, or one for each index of the axis
  std::vector<int64_t> from_, to_;       // along a row
  bool neighbours_ = true;               // in order on both sides
};

template <typename Conversion>
std::shared_ptr<const Primitive> MakeStep(absl::string_view name,
                                          const std::vector<QuantizationParams>& quantization,
                                          int axis, const MemoryDesc& src, const MemoryDesc& dst) {
  return std::make_shared<ConversionStep<Conversion>>(
      StepInfo(name, {{kArgSrc, src}, {kArgDst, dst}}), quantization, axis, src, dst);
}

absl::Status CheckTypes(bool known, const MemoryDesc& src, const MemoryDesc& dst) {
  if (!known) {
    return absl::UnimplementedError(absl::StrCat("no step from ", DataTypeName(src.data_type()),
                                                 " to ", DataTypeName(dst.data_type())));
  }
  return CheckStepSizes(dst);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateQuantizeStep(const graph::Quantize& quantize,
                                                                    const MemoryDesc& src,
                                                                    const MemoryDesc& dst) {
  constexpr absl::string_view kName = "runtime/quantize";
  const bool to_u8 = dst.data_type() == DataType::kU8, to_s8 = dst.data_type() == DataType::kS8;
  const bool known = src.data_type() == DataType::kF32 && (to_u8 || to_s8);
  ABSL_RETURN_IF_ERROR(CheckTypes(known, src, dst));
  if (to_u8) return MakeStep<Quantizing<uint8_t>>(kName, quantize.params, quantize.axis, src, dst);
  return MakeStep<Quantizing<int8_t>>(kName, quantize.params, quantize.axis, src, dst);
}

absl::StatusOr<std::shared_ptr<const Primitive>> CreateDequantizeStep(
    const graph::Dequantize& dequantize, const MemoryDesc& src, const MemoryDesc& dst) {
  constexpr absl::string_view kName = "runtime/dequantize";
  const DataType from = src.data_type();
  const bool known = dst.data_type() == DataType::kF32 && (IsByte(from) || from == DataType::kF32);
  ABSL_RETURN_IF_ERROR(CheckTypes(known, src, dst));
  const std::vector<QuantizationParams>& quantization = dequantize.params;
  if (from == DataType::kU8)
    return MakeStep<Dequantizing<uint8_t>>(kName, quantization, dequantize.axis, src, dst);
  if (from == DataType::kS8)
    return MakeStep<Dequantizing<int8_t>>(kName, quantization, dequantize.axis, src, dst);
  return MakeStep<Dequantizing<float>>(kName, quantization, dequantize.axis, src, dst);
}

}  // namespace tilewire::runtime
