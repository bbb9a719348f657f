// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/integer/integer_depthwise_generator.h"

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace tilewire::convolution {
namespace {

class IntegerDepthwiseGenerator final : public jit::Generator {
 public:
  IntegerDepthwiseGenerator(absl::string_view name, const IntegerTileConfig& config)
      : Generator(name),
        config_(config),
        unit_(config.epilogue.unit),
        lanes_(unit_.lanes()),
        pixels_(config.epilogue.pixels),
        taps_(static_cast<int>(config.loops.kernel[2])),
        epilogue_(this, config.epilogue, Finishing()) {}

 private:
  // rdi holds the arguments. After the reduction src_, weights_, src_row_ and weights_row_ hold
  // dst, bias, scales and compensation.
  const Xbyak::Reg64 args_ = rdi;
  const Xbyak::Reg64 src_ = rsi, weights_ = rdx;        // of the current depth tap
  const Xbyak::Reg64 src_row_ = r8, weights_row_ = r9;  // of the current height tap
  const Xbyak::Reg64 rows_left_ = rcx, depths_left_ = r10;
  const Xbyak::Opmask tail_ = k2;

  AccumulatorEpilogue::Registers Finishing() const {
    return {src_, weights_, rax, unit_.RegistersFrom(pixels_), src_row_, weights_row_};
  }

  // Vectors: the sums, the weights of every width tap, a column of src, a product.
  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }
  Xbyak::Xmm Weights(int tap) const { return Vector(pixels_ + tap); }
  Xbyak::Xmm Column() const { return Vector(pixels_ + taps_); }
  Xbyak::Xmm Product() const { return Vector(pixels_ + taps_ + 1); }
  Xbyak::Address Argument(size_t offset) { return qword[args_ + static_cast<int>(offset)]; }

  void Emit() override {
    Xbyak::Label done, depth;
    for (int i = 0; i < pixels_; ++i) {
      unit_.Zero(this, Vector(i));
    }
    if (LoadsPart() && unit_.has_masks()) {
      mov(eax, (1u << config_.epilogue.tail_lanes) - 1);
      kmovw(tail_, eax);
    }
    mov(depths_left_, Argument(offsetof(IntegerTileArgs, loops.depth_taps)));
    test(depths_left_, depths_left_);
    jz(done, T_NEAR);
    mov(src_, Argument(offsetof(IntegerTileArgs, src)));
    mov(weights_, Argument(offsetof(IntegerTileArgs, weights)));
    L(depth);
    ReduceRows();
    AddBytes(src_, config_.loops.src_tap[0]);
    AddBytes(weights_, config_.loops.kernel[1] * taps_ * lanes_);
    dec(depths_left_);
    jnz(depth, T_NEAR);
    L(done);
    LoadEpilogueArguments(this, config_.epilogue, Finishing());
    epilogue_.FinishIntegers();
    vzeroupper();
    ret();
    epilogue_.EmitTables();
  }

  void ReduceRows() {
    Xbyak::Label loop;
    mov(src_row_, src_);
    mov(weights_row_, weights_);
    mov(rows_left_, Argument(offsetof(IntegerTileArgs, loops.height_taps)));
    L(loop);
    for (int tap = 0; tap < taps_; ++tap) LoadWeights(tap);
    for (const auto& [offset, users] : Columns()) {
      LoadColumn(offset);
      for (const auto& [pixel, tap] : users) MultiplyAdd(pixel, tap);
    }
    AddBytes(src_row_, config_.loops.src_tap[1]);
    AddBytes(weights_row_, taps_ * lanes_);
    dec(rows_left_);
    jnz(loop, T_NEAR);
  }

  // Maps the byte offset of a column of src to the pixels that read it, with their taps. The
  // padding has no columns.
  std::map<int64_t, std::vector<std::pair<int, int>>> Columns() const {
    std::map<int64_t, std::vector<std::pair<int, int>>> columns;
    for (int pixel = 0; pixel < pixels_; ++pixel) {
      for (int64_t tap = config_.loops.taps[pixel].begin; tap < config_.loops.taps[pixel].end;
           ++tap) {
        columns[pixel * config_.loops.src_pixel + tap * config_.loops.src_tap[2]].emplace_back(
            pixel, tap);
      }
    }
    return columns;
  }

  // A weight is in the lower half of its lane, and 0 in the upper half, so that the upper half
  // of src does not matter.
  void LoadWeights(int tap) {
    const Xbyak::Xmm weights = Weights(tap);
    vpmovsxbd(weights, ptr[weights_row_ + tap * lanes_]);
    vpslld(weights, weights, 16);
    vpsrld(weights, weights, 16);
  }

  bool LoadsPart() const { return config_.epilogue.tail_lanes != 0 && config_.packed_src; }

  void LoadColumn(int64_t offset) {
    const Xbyak::RegExp from = src_row_ + static_cast<int>(offset);
    if (LoadsPart() && !unit_.has_masks()) {
      const Xbyak::Xmm low(Column().getIdx());
      vpxor(low, low, low);
      for (int i = 0; i < config_.epilogue.tail_lanes; ++i) vpinsrb(low, low, ptr[from + i], i);
      config_.signed_src ? vpmovsxbd(Column(), low) : vpmovzxbd(Column(), low);
      return;
    }
    const Xbyak::Xmm to = LoadsPart() ? Column() | tail_ | T_z : Column();
    config_.signed_src ? vpmovsxbd(to, ptr[from]) : vpmovzxbd(to, ptr[from]);
  }

  void MultiplyAdd(int pixel, int tap) {
    if (unit_.has_dot_products()) {
      return unit_.AddWordProducts(this, Vector(pixel), Column(), Weights(tap));
    }
    vpmaddwd(Product(), Column(), Weights(tap));
    vpaddd(Vector(pixel), Vector(pixel), Product());
  }

  void AddBytes(const Xbyak::Reg64& to, int64_t bytes) {
    if (bytes != 0) add(to, static_cast<int>(bytes));
  }

  const IntegerTileConfig config_;
  const VectorUnit unit_;
  const int lanes_, pixels_, taps_;
  AccumulatorEpilogue epilogue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateIntegerDepthwise(
    absl::string_view name, const IntegerTileConfig& config) {
  return jit::Compile<IntegerDepthwiseGenerator>(name, config);
}

}  // namespace tilewire::convolution
