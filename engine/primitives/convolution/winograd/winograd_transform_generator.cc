// SPDX-License-Identifier: Apache-2.0
//
// Both transforms are separable: one dimension over the rows, with the intermediate on the stack,
// then the other over the columns. One dimension of F(4,3), with points 0, +-p, +-q, infinity:
//
//   t0 = d4 - (pp + qq) d2 + ppqq d0           y0 = m0 + (m1 + m2) + (m3 + m4)
//   t1, t2 = (d4 - qq d2) +- p (d3 - qq d1)    y1 = p (m1 - m2) + q (m3 - m4)
//   t3, t4 = (d4 - pp d2) +- q (d3 - pp d1)    y2 = pp (m1 + m2) + qq (m3 + m4)
//   t5 = d5 - (pp + qq) d3 + ppqq d1           y3 = ppp (m1 - m2) + qqq (m3 - m4) + m5
//
// and of F(2,3), with points 0, +-1, infinity:
//
//   t0 = d2 - d0   t1, t2 = d2 +- d1   t3 = d3 - d1       y0 = m0 + m1 + m2   y1 = m1 - m2 + m3
//
// Tiles begin at even pixels, so that a window of a 2x2 pooling lies in one tile. Pooling takes
// earlier pixels first, as the pooling primitive does, so that of two zeros the same one is kept.
#include "engine/primitives/convolution/winograd/winograd_transform_generator.h"

#include <array>
#include <cstddef>
#include <vector>

#include "engine/base/check.h"
#include "engine/jit/extremum.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/kernels/tiles/winograd_transforms.h"

namespace tilewire::convolution {
namespace {

// Registers 0 to 9 are for work, 10 to 15 hold constants. Functions take and return registers by
// number.
class TransformGenerator : public jit::Generator {
 protected:
  static constexpr int kFirstConstant = 10;

  TransformGenerator(absl::string_view name, const jit::VectorUnit& unit, int tile)
      : Generator(name), unit_(unit), tile_(tile), side_(tile + 2) {}

  Xbyak::Xmm V(int index) const { return unit_.Vector(index); }
  int VectorBytes() const { return unit_.bytes(); }

  // Makes room for `vectors` on the stack, aligned to vectors; rbp keeps the old stack pointer.
  void OpenFrame(int vectors) {
    Preamble();
    mov(rbp, rsp);
    sub(rsp, vectors * VectorBytes());
    and_(rsp, -64);
  }
  void CloseFrame() {
    mov(rsp, rbp);
    Postamble();
  }

  void LoadConstants(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int index = kFirstConstant + static_cast<int>(i);
      unit_.Broadcast(this, V(index), static_cast<float>(values[i]), rax);
    }
  }

  const jit::VectorUnit unit_;
  const int tile_, side_;
};

class InputGenerator final : public TransformGenerator {
 public:
  InputGenerator(absl::string_view name, const WinogradInputConfig& config)
      : TransformGenerator(name, config.unit, config.tile), config_(config) {}

 private:
  const Xbyak::Reg64 src_ = rsi, v_ = rdx, row_bytes_ = rcx, block_bytes_ = r8, blocks_left_ = r9;
  const Xbyak::Reg64 row_ = r10;
  // Constants of F(4,3).
  static constexpr int kP = 10, kQ = 11, kPP = 12, kQQ = 13, kPPQQ = 14, kPPplusQQ = 15;

  void Emit() override {
    OpenFrame(side_ * side_);
    mov(src_, qword[rdi + offsetof(WinogradInputArgs, src)]);
    mov(v_, qword[rdi + offsetof(WinogradInputArgs, v)]);
    mov(row_bytes_, qword[rdi + offsetof(WinogradInputArgs, row_bytes)]);
    mov(block_bytes_, qword[rdi + offsetof(WinogradInputArgs, block_bytes)]);
    mov(blocks_left_, qword[rdi + offsetof(WinogradInputArgs, blocks)]);
    const auto [p, q] = WinogradPointsOf(tile_);
    if (tile_ == 4) LoadConstants({p, q, p * p, q * q, p * p * q * q, p * p + q * q});
    Xbyak::Label block;
    L(block);
    TransformBlock();
    add(src_, block_bytes_);
    add(v_, static_cast<int>(config_.block_bytes));
    dec(blocks_left_);
    jnz(block, T_NEAR);
    CloseFrame();
  }

  // The part of this row that only the next patch has. Rows of all blocks of channels are more
  // streams than the core prefetches by itself, and src seldom fits the second cache.
  void PrefetchNextPatch() {
    for (int x = 0; x < tile_; ++x) prefetcht1(ptr[row_ + (side_ + x) * VectorBytes()]);
  }

  void TransformBlock() {
    mov(row_, src_);
    for (int row = 0; row < side_; ++row) {
      for (int x = 0; x < side_; ++x) vmovups(V(x), ptr[row_ + x * VectorBytes()]);
      PrefetchNextPatch();
      add(row_, row_bytes_);
      const std::array<int, 6> results = Transform();
      for (int x = 0; x < side_; ++x) {
        vmovaps(ptr[rsp + (row * side_ + x) * VectorBytes()], V(results[x]));
      }
    }
    for (int x = 0; x < side_; ++x) {
      for (int row = 0; row < side_; ++row) {
        vmovaps(V(row), ptr[rsp + (row * side_ + x) * VectorBytes()]);
      }
      const std::array<int, 6> results = Transform();
      for (int row = 0; row < side_; ++row) {
        vmovups(ptr[v_ + static_cast<int>((row * side_ + x) * config_.point_bytes)],
                V(results[row]));
      }
    }
  }

  // Registers 0 to side_ - 1 hold d; the result names those that hold t.
  std::array<int, 6> Transform() { return tile_ == 4 ? Transform4() : Transform2(); }

  std::array<int, 6> Transform4() {
    vfmadd213ps(V(0), V(kPPQQ), V(4));
    vfnmadd231ps(V(0), V(2), V(kPPplusQQ));
    vfmadd231ps(V(5), V(1), V(kPPQQ));
    vfnmadd231ps(V(5), V(3), V(kPPplusQQ));
    vmovaps(V(6), V(4));
    vfnmadd231ps(V(6), V(2), V(kQQ));
    vmovaps(V(7), V(3));
    vfnmadd231ps(V(7), V(1), V(kQQ));
    vfnmadd231ps(V(4), V(2), V(kPP));
    vfnmadd231ps(V(3), V(1), V(kPP));
    vmovaps(V(1), V(6));
    vfmadd231ps(V(1), V(7), V(kP));
    vfnmadd231ps(V(6), V(7), V(kP));
    vmovaps(V(2), V(4));
    vfmadd231ps(V(2), V(3), V(kQ));
    vfnmadd231ps(V(4), V(3), V(kQ));
    return {0, 1, 6, 2, 4, 5};
  }

  std::array<int, 6> Transform2() {
    vsubps(V(0), V(2), V(0));
    vaddps(V(4), V(2), V(1));
    vsubps(V(2), V(2), V(1));
    vsubps(V(3), V(3), V(1));
    return {0, 4, 2, 3};
  }

  const WinogradInputConfig config_;
};

EpilogueConfig EpilogueOf(const WinogradOutputConfig& config) {
  EpilogueConfig epilogue{.unit = config.unit};
  epilogue.pixels = config.columns;
  epilogue.dst_pixel_bytes = config.dst_pixel_bytes;
  epilogue.bias = config.bias;
  epilogue.tail_lanes = config.tail_lanes;
  epilogue.post_ops = config.post_ops;
  return epilogue;
}

// Stores a row that has been pooled.
EpilogueConfig PooledEpilogueOf(const WinogradOutputConfig& config) {
  EpilogueConfig epilogue{.unit = config.unit};
  epilogue.pixels = config.columns / MaxPoolingPostOp::kSize;
  epilogue.dst_pixel_bytes = config.dst_pixel_bytes;
  epilogue.tail_lanes = config.tail_lanes;
  return epilogue;
}

class OutputGenerator final : public TransformGenerator {
 public:
  OutputGenerator(absl::string_view name, const WinogradOutputConfig& config)
      : TransformGenerator(name, config.unit, config.tile),
        config_(config),
        epilogue_(this, EpilogueOf(config), registers_),
        pooled_epilogue_(this, PooledEpilogueOf(config), registers_) {
    TILEWIRE_CHECK(config.rows <= config.tile && config.columns <= config.tile &&
                       (!config.pools || (config.rows % 2 == 0 && config.columns % 2 == 0)),
                   "no more than a tile, and whole windows where they are pooled");
  }

 private:
  const Xbyak::Reg64 m_ = rsi, dst_ = rdx, bias_ = rcx, blocks_left_ = r8, row_ = r9;
  const Xbyak::Reg64 slopes_ = r10;
  const Xbyak::Opmask ordered_ = k3;  // the epilogue has 1 and 2
  const AccumulatorEpilogue::Registers registers_ = {
      .dst = row_, .bias = bias_, .spare = rax, .scratch = {4, 5, 6, 7, 8, 9}, .slopes = slopes_};
  // Constants of F(4,3).
  static constexpr int kP = 10, kQ = 11, kPP = 12, kQQ = 13, kPPP = 14, kQQQ = 15;

  void Emit() override {
    OpenFrame(tile_ * side_);
    mov(m_, qword[rdi + offsetof(WinogradOutputArgs, m)]);
    mov(dst_, qword[rdi + offsetof(WinogradOutputArgs, dst)]);
    mov(bias_, qword[rdi + offsetof(WinogradOutputArgs, bias)]);
    mov(blocks_left_, qword[rdi + offsetof(WinogradOutputArgs, blocks)]);
    mov(slopes_, qword[rdi + offsetof(WinogradOutputArgs, slopes)]);
    const auto [p, q] = WinogradPointsOf(tile_);
    if (tile_ == 4) LoadConstants({p, q, p * p, q * q, p * p * p, q * q * q});
    Xbyak::Label block;
    L(block);
    TransformBlock();
    add(m_, static_cast<int>(config_.block_bytes));
    add(dst_, static_cast<int>(config_.dst_block_bytes));
    add(bias_, VectorBytes());
    add(slopes_, VectorBytes());
    dec(blocks_left_);
    jnz(block, T_NEAR);
    CloseFrame();
    epilogue_.EmitTables();
    if (config_.pools) pooled_epilogue_.EmitTables();
  }

  void TransformBlock() {
    for (int x = 0; x < side_; ++x) {
      for (int row = 0; row < side_; ++row) {
        vmovups(V(row), ptr[m_ + static_cast<int>((row * side_ + x) * config_.point_bytes)]);
      }
      Transform();
      for (int row = 0; row < config_.rows; ++row) {
        vmovaps(Kept(row, x), V(row));
      }
    }
    mov(row_, dst_);
    for (int row = 0; row < config_.rows; ++row) {
      for (int x = 0; x < side_; ++x) vmovaps(V(x), Kept(row, x));
      Transform();
      epilogue_.AddBias();
      epilogue_.ApplyPostOps(/*skip_sum=*/false);
      if (config_.pools) {
        PoolRow(row);
        continue;
      }
      epilogue_.ZeroTail();
      epilogue_.Store();
      add(row_, static_cast<int>(config_.dst_row_bytes));
    }
  }

  Xbyak::Address Kept(int row, int x) const { return ptr[rsp + (row * side_ + x) * VectorBytes()]; }

  // The first of two rows waits where it was read from.
  void PoolRow(int row) {
    const int pooled = config_.columns / MaxPoolingPostOp::kSize;
    for (int x = 0; x < pooled; ++x) {
      RunningMaximum(2 * x, 2 * x + 1);
      if (x > 0) vmovaps(V(x), V(2 * x));
    }
    const bool is_first = row % MaxPoolingPostOp::kSize == 0;
    for (int x = 0; x < pooled; ++x) {
      if (is_first) {
        vmovaps(Kept(row, x), V(x));
        continue;
      }
      constexpr int kHeld = 4;
      vmovaps(V(kHeld), Kept(row - 1, x));
      RunningMaximum(kHeld, x);
      vmovaps(V(x), V(kHeld));
    }
    if (is_first) return;
    pooled_epilogue_.ZeroTail();
    pooled_epilogue_.Store();
    add(row_, static_cast<int>(config_.dst_row_bytes));
  }

  void RunningMaximum(int held, int other) {
    constexpr int kSpare = 5;
    jit::EmitRunningMaximum(this, unit_, V(held), V(other), V(kSpare), ordered_);
  }

  // Registers 0 to side_ - 1 hold m, then registers 0 to tile_ - 1 hold y.
  void Transform() { return tile_ == 4 ? Transform4() : Transform2(); }

  void Transform4() {
    vaddps(V(6), V(1), V(2));
    vsubps(V(1), V(1), V(2));
    vaddps(V(7), V(3), V(4));
    vsubps(V(3), V(3), V(4));
    vaddps(V(0), V(0), V(6));
    vaddps(V(0), V(0), V(7));
    vmulps(V(2), V(6), V(kPP));
    vfmadd231ps(V(2), V(7), V(kQQ));
    vfmadd231ps(V(5), V(1), V(kPPP));
    vfmadd231ps(V(5), V(3), V(kQQQ));
    vmulps(V(1), V(1), V(kP));
    vfmadd231ps(V(1), V(3), V(kQ));
    vmovaps(V(3), V(5));
  }

  void Transform2() {
    vaddps(V(0), V(0), V(1));
    vaddps(V(0), V(0), V(2));
    vsubps(V(1), V(1), V(2));
    vaddps(V(1), V(1), V(3));
  }

  const WinogradOutputConfig config_;
  AccumulatorEpilogue epilogue_, pooled_epilogue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateWinogradInput(
    absl::string_view name, const WinogradInputConfig& config) {
  return jit::Compile<InputGenerator>(name, config);
}

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateWinogradOutput(
    absl::string_view name, const WinogradOutputConfig& config) {
  return jit::Compile<OutputGenerator>(name, config);
}

}  // namespace tilewire::convolution
