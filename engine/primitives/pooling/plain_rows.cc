// SPDX-License-Identifier: Apache-2.0
//
// One piece of work is a channel of an image. Taps are combined in the order of depth, height,
// width, as everywhere: the bits do not depend on the layout. Zeros that padding adds to a sum
// change no bit of it, for it begins with +0.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "engine/jit/extremum.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/axis.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/primitives/single_source.h"
#include "engine/threading/stop.h"

namespace tilewire::pooling {
namespace {

// The code that combines a row of src with a row of windows:
//
//   windows[o] = combine(windows[o], row[o * stride + k])      for every k in [0, kernel), in order
//
// where combine is the maximum or the sum, of f32 or of s32. Whole vectors of windows.
struct TapArgs {
  const uint32_t* row;  // padded
  uint32_t* windows;
  jit::LoopCount vectors;
};

struct TapShape {
  VectorUnit unit;
  bool is_max, is_float;
  int64_t kernel, stride;
};

constexpr int kResult = 0, kValue = 1, kSpare = 2, kSteps = 3, kMask = 4;  // vector registers

class TapGenerator final : public jit::Generator {
 public:
  TapGenerator(const TapShape& shape, absl::string_view name) : Generator(name), shape_(shape) {}

 private:
  void Emit() override {
    mov(row_, ptr[rdi + offsetof(TapArgs, row)]);
    mov(windows_, ptr[rdi + offsetof(TapArgs, windows)]);
    mov(left_, ptr[rdi + offsetof(TapArgs, vectors)]);
    vmovups(Vector(kSteps), ptr[rip + steps_]);
    Xbyak::Label next;
    L(next);
    vmovups(Vector(kResult), ptr[windows_]);
    for (int64_t tap = 0; tap < shape_.kernel; ++tap) {
      EmitLoad(tap);
      EmitCombine();
    }
    vmovups(ptr[windows_], Vector(kResult));
    add(windows_, shape_.unit.bytes());
    add(row_, static_cast<uint32_t>(shape_.unit.lanes() * shape_.stride * 4));
    dec(left_);
    jnz(next, T_NEAR);
    vzeroupper();
    ret();
    align(64);
    L(steps_);
    for (int lane = 0; lane < shape_.unit.lanes(); ++lane)
      dd(static_cast<uint32_t>(lane * shape_.stride));
  }

  // Loads neighbours, or every stride-th element.
  void EmitLoad(int64_t tap) {
    const int displacement = static_cast<int>(tap * 4);
    if (shape_.stride == 1) {
      vmovups(Vector(kValue), ptr[row_ + displacement]);
    } else {
      shape_.unit.Gather(this, Vector(kValue), row_, Vector(kSteps), /*scale=*/4, displacement,
                         gathered_, kMask);
    }
  }

  void EmitCombine() {
    const Xbyak::Xmm result = Vector(kResult), value = Vector(kValue), spare = Vector(kSpare);
    if (!shape_.is_max) {
      shape_.is_float ? vaddps(result, result, value) : vpaddd(result, result, value);
    } else if (!shape_.is_float) {
      vpmaxsd(result, result, value);
    } else {
      jit::EmitRunningMaximum(this, shape_.unit, result, value, spare, ordered_);
    }
  }

  Xbyak::Xmm Vector(int index) const { return shape_.unit.Vector(index); }

  // Arguments arrive in rdi.
  const Xbyak::Reg64 row_ = rsi, windows_ = rdx, left_ = rcx;
  const Xbyak::Opmask gathered_ = k1, ordered_ = k2;
  const TapShape shape_;
  Xbyak::Label steps_;  // a vector of 0, stride, 2 * stride, ...
};

// The value that changes no maximum, or no sum.
uint32_t IdentityOf(const PoolingDesc& desc) {
  if (desc.algorithm != PoolingAlgorithm::kMax) return 0;
  if (desc.src.data_type() != DataType::kF32) {
    return std::bit_cast<uint32_t>(std::numeric_limits<int32_t>::min());
  }
  return std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity());
}

template <typename T>
void Widen(const std::byte* from, int64_t count, uint32_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    to[i] = static_cast<uint32_t>(static_cast<int32_t>(value));
  }
}

template <typename T>
void Narrow(const uint32_t* from, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(from[i]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

// Immutable.
class PlainRows final : public SingleSource<std::byte> {
 public:
  PlainRows(PrimitiveInfo info, const PoolingDesc& desc, int64_t lanes,
            std::unique_ptr<const TapGenerator> taps)
      : SingleSource(std::move(info)),
        src_(desc.src),
        dst_(desc.dst),
        type_(desc.src.data_type()),
        is_max_(desc.algorithm == PoolingAlgorithm::kMax),
        identity_(IdentityOf(desc)),
        width_(AxisOf(desc, 0)),
        height_(AxisOf(desc, 1)),
        depth_(AxisOf(desc, 2)),
        vectors_(DivUp(width_.out, lanes)),
        window_count_(vectors_ * lanes),
        row_count_(std::max((window_count_ - 1) * width_.stride + width_.kernel,
                            width_.padding + width_.in)),
        taps_(std::move(taps)) {
    const bool include = desc.algorithm == PoolingAlgorithm::kAvgIncludePadding;
    fixed_divisor_ = include ? static_cast<float>(WindowOf(desc)) : 0;
    for (int64_t o = 0; o < width_.out; ++o) widths_.push_back(static_cast<float>(width_.Taps(o)));
  }

 private:
  // The memory of one piece of work.
  using Row = absl::InlinedVector<uint32_t, 512>;
  struct Buffers {
    Row row, windows;
  };

  void RunOn(const std::byte* src, std::byte* dst, const threading::Team& team) const override {
    if (dst_.ElementCount() == 0) return;
    const int64_t size = SizeOf(type_), channels = dst_.dim(1);
    team.ParallelFor(dst_.dim(0) * channels, [&](int64_t i) {
      const int64_t n = i / channels, c = i % channels;
      RunPlane(src + (n * src_.stride(0) + c * src_.stride(1)) * size,
               dst + (n * dst_.stride(0) + c * dst_.stride(1)) * size);
    });
  }

  void RunPlane(const std::byte* src, std::byte* dst) const {
    Buffers buffers;
    buffers.row.assign(row_count_, identity_);
    buffers.windows.resize(window_count_);
    for (int64_t od = 0; od < depth_.out; ++od) {
      for (int64_t oh = 0; oh < height_.out; ++oh) {
        RunRow(src, od, oh, &buffers);
        if (threading::Stopped()) return;
        const float rows = static_cast<float>(depth_.Taps(od) * height_.Taps(oh));
        StoreRow(rows, &buffers.windows, dst + od * depth_.dst_stride + oh * height_.dst_stride);
      }
    }
  }

  void RunRow(const std::byte* src, int64_t od, int64_t oh, Buffers* buffers) const {
    const auto run = taps_->entry<void (*)(const TapArgs*)>();
    const TapArgs args = {buffers->row.data(), buffers->windows.data(), vectors_};
    std::fill(buffers->windows.begin(), buffers->windows.end(), identity_);
    for (int64_t d = depth_.Begin(od); d < depth_.Begin(od) + depth_.Taps(od); ++d) {
      for (int64_t h = height_.Begin(oh); h < height_.Begin(oh) + height_.Taps(oh); ++h) {
        if (threading::Stopped()) return;
        WidenRow(src + d * depth_.src_stride + h * height_.src_stride,
                 buffers->row.data() + width_.padding);
        run(&args);
      }
    }
  }

  void WidenRow(const std::byte* from, uint32_t* to) const {
    if (type_ == DataType::kU8) return Widen<uint8_t>(from, width_.in, to);
    if (type_ == DataType::kS8) return Widen<int8_t>(from, width_.in, to);
    std::memcpy(to, from, width_.in * sizeof(uint32_t));
  }

  // `rows`: the height and depth of the windows inside src.
  void StoreRow(float rows, Row* windows, std::byte* dst) const {
    if (!is_max_) {
      for (int64_t o = 0; o < width_.out; ++o) {
        const uint32_t bits = (*windows)[o];
        const float sum = type_ == DataType::kF32 ? std::bit_cast<float>(bits)
                                                  : static_cast<float>(static_cast<int32_t>(bits));
        const float divisor = fixed_divisor_ != 0 ? fixed_divisor_ : widths_[o] * rows;
        StoreElement(type_, sum / divisor, dst, o);
      }
    } else if (SizeOf(type_) == 1) {
      Narrow<uint8_t>(windows->data(), width_.out, dst);
    } else {
      std::memcpy(dst, windows->data(), width_.out * sizeof(uint32_t));
    }
  }

  const MemoryDesc src_, dst_;
  const DataType type_;
  const bool is_max_;
  const uint32_t identity_;
  const Axis width_, height_, depth_;
  const int64_t vectors_, window_count_, row_count_;
  float fixed_divisor_ = 0;  // 0: depends on the window
  std::vector<float> widths_;
  const std::unique_ptr<const TapGenerator> taps_;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolvePlainRows(const Request<PoolingDesc>& request) {
  if (request.desc.src.data_type() == DataType::kBf16)
    return Unimplemented("takes f32 and integers, not bf16");
  ABSL_RETURN_IF_ERROR(RequireNoPlaces(request.desc));
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveDefaults(request.desc, request.attributes));
  const int last = resolved.src.rank() - 1;
  for (const MemoryDesc* tensor : {&resolved.src, &resolved.dst}) {
    if (!tensor->IsPlain() || (tensor->stride(last) != 1 && tensor->dim(last) > 1)) {
      return Unimplemented("takes pixels that are neighbours, not ", tensor->ToString());
    }
  }
  const Axis w = AxisOf(resolved, 0);
  constexpr int64_t kLongest = 1 << 20;
  if (w.kernel > 512 || w.stride > 512 || std::max(w.in, (w.out + 16) * w.stride) > kLongest) {
    return Unimplemented("a width of ", w.in, " with windows of ", w.kernel, " and steps of ",
                         w.stride);
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlainRows(const Request<PoolingDesc>& request) {
  const PoolingDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const Axis w = AxisOf(desc, 0);
  const TapShape shape = {unit, desc.algorithm == PoolingAlgorithm::kMax,
                          desc.src.data_type() == DataType::kF32, w.kernel, w.stride};
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const TapGenerator> taps,
                        jit::Compile<TapGenerator>(shape, request.facts.name));
  return std::make_unique<PlainRows>(WithCode(InfoOf(request), *taps), desc, unit.lanes(),
                                     std::move(taps));
}

}  // namespace tilewire::pooling
