// SPDX-License-Identifier: Apache-2.0
//
// Elements that lie in one order on both sides are converted in runs that the compiler turns into
// vectors; others one by one, along the rows of dst.
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/moves/tensor_rows.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/quantize/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::quantize {
namespace {

// Rounds to the nearest integer, halves to the even one, for |x| <= 2^22: f32 holds no fraction
// beyond 2^23.
inline float RoundSmall(float x) {
  constexpr float kNoFraction = 12582912.0f;
  return (x + kNoFraction) - kNoFraction;
}

template <typename To>
struct Quantizing {
  using Src = float;
  using Dst = To;
  Quantizing(float step, int32_t zero_point, float /*shift*/)
      : scale(step),
        zero(zero_point),
        lowest(static_cast<float>(std::numeric_limits<To>::lowest() - zero_point)),
        highest(static_cast<float>(std::numeric_limits<To>::max() - zero_point)) {}
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
  Dequantizing(float step, int32_t zero_point, float to_add)
      : scale(step), zero(static_cast<float>(zero_point)), shift(to_add) {}
  float operator()(From integer) const {
    return (static_cast<float>(integer) - zero) * scale + shift;
  }
  float scale, zero, shift;
};

// Immutable.
template <typename Conversion>
class Rows final : public Primitive {
  using Src = typename Conversion::Src;
  using Dst = typename Conversion::Dst;

 public:
  Rows(PrimitiveInfo info, const QuantizeDesc& desc)
      : Primitive(std::move(info)),
        dst_(desc.dst),
        rows_(desc.dst),
        src_offsets_(desc.src),
        dst_offsets_(desc.dst),
        axis_(desc.scales.size() == 1 ? kNoAxis : desc.axis),
        flat_(IsFlat(desc.src, desc.dst) && desc.scales.size() == 1) {
    for (size_t i = 0; i < desc.scales.size(); ++i)
      conversions_.emplace_back(desc.scales[i], desc.zero_points[i], ShiftOf(desc, i));
    for (int64_t i = 0; i < dst_.dim(rows_.inner()); ++i) {
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
      threading::ParallelForRanges(team, count, kElementsAtOnce, [&](int64_t first, int64_t end) {
        Convert(conversions_[0], src + first, dst + first, end - first);
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
  const TensorRows rows_;
  const SeparableOffsets src_offsets_, dst_offsets_;
  const int axis_;
  const bool flat_;
  std::vector<Conversion> conversions_;  // one, or one for each index of the axis
  std::vector<int64_t> from_, to_;       // along a row
  bool neighbours_ = true;               // in order on both sides
};

template <typename Conversion>
std::unique_ptr<Primitive> MakeRows(const Request<QuantizeDesc>& request) {
  PrimitiveInfo info = InfoOf(request);
  info.code_bytes =
      static_cast<int64_t>(request.desc.scales.size() * sizeof(Conversion));  // the tables
  return std::make_unique<Rows<Conversion>>(std::move(info), request.desc);
}

}  // namespace

absl::StatusOr<QuantizeDesc> ResolveRows(const Request<QuantizeDesc>& request) {
  if (!request.desc.range.IsZero()) return Unimplemented("takes known scales");
  ABSL_ASSIGN_OR_RETURN(QuantizeDesc resolved, ResolveReference(request));
  ABSL_RETURN_IF_ERROR(TensorRows::RequireTables(resolved.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const Request<QuantizeDesc>& request) {
  switch (request.desc.dst.data_type()) {
    case DataType::kU8:
      return MakeRows<Quantizing<uint8_t>>(request);
    case DataType::kS8:
      return MakeRows<Quantizing<int8_t>>(request);
    default:
      break;
  }
  switch (request.desc.src.data_type()) {
    case DataType::kU8:
      return MakeRows<Dequantizing<uint8_t>>(request);
    case DataType::kS8:
      return MakeRows<Dequantizing<int8_t>>(request);
    default:
      return MakeRows<Dequantizing<float>>(request);
  }
}

}  // namespace tilewire::quantize
