// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/winograd/winograd_gemm_generator.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/cache_line.h"
#include "engine/base/checked_math.h"
#include "engine/kernels/tiles/block_unit.h"

namespace tilewire::convolution {
namespace {

// The first group reads weights from the second cache: they are prefetched this many bytes ahead.
constexpr int kNearBytes = 1024;

class WinogradGemmGenerator final : public jit::Generator {
 public:
  WinogradGemmGenerator(absl::string_view name, const WinogradGemmConfig& config)
      : Generator(name), config_(config), unit_(config.unit), lanes_(unit_.lanes()) {}

 private:
  // rdi holds the arguments.
  const Xbyak::Reg64 v_ = rsi, u_ = rdx;       // of the current input block
  const Xbyak::Reg64 m_ = rcx, first_u_ = r8;  // of the current group; of all groups
  const Xbyak::Reg64 groups_left_ = r9, blocks_left_ = r10;
  const Xbyak::Reg64 ahead_ = r11;  // the part of the next matrix that is prefetched next
  const Xbyak::Reg64 rest_ = rax;   // input blocks of the chains after the current one

  Xbyak::Xmm Sum(int block, int tile) const { return unit_.Vector(block * config_.tiles + tile); }
  Xbyak::Xmm Weights(int block) const {
    return unit_.Vector(config_.blocks * config_.tiles + block);
  }
  Xbyak::Xmm Broadcast(int tile) const {
    const int first = config_.blocks * (config_.tiles + 1);
    return unit_.Vector(first + tile % std::max(1, unit_.registers() - first));
  }
  bool EmbedsBroadcasts() const { return unit_.has_masks() && config_.blocks == 1; }
  // A register of an output block, as wide as the block's channels need (block_unit.h).
  Xbyak::Xmm Narrow(int block, const Xbyak::Xmm& v) const {
    const int tail_lanes = block == config_.blocks - 1 ? config_.tail_lanes : 0;
    return UnitOfBlock(unit_, tail_lanes).Vector(v.getIdx());
  }
  int VectorBytes() const { return unit_.bytes(); }
  int64_t MatrixBytes() const {
    return config_.input_blocks * lanes_ * config_.blocks * VectorBytes();
  }
  int GroupBlockBytes() const { return config_.tiles * VectorBytes(); }
  // v_ points this many bytes past the block's first element, so that more displacements fit one
  // byte.
  int VBias() const { return unit_.BroadcastReach(); }

  void Emit() override {
    Preamble();
    mov(v_, qword[rdi + offsetof(WinogradGemmArgs, v)]);
    mov(first_u_, qword[rdi + offsetof(WinogradGemmArgs, u)]);
    mov(m_, qword[rdi + offsetof(WinogradGemmArgs, m)]);
    mov(groups_left_, qword[rdi + offsetof(WinogradGemmArgs, groups)]);
    add(v_, VBias());
    lea(ahead_, ptr[first_u_ + static_cast<int>(MatrixBytes())]);
    Xbyak::Label group;
    L(group);
    ReduceGroup();
    StoreGroup();
    dec(groups_left_);
    jnz(group, T_NEAR);
    Postamble();
  }

  bool HasChains() const {
    return config_.chain_blocks > 0 && config_.chain_blocks < config_.input_blocks;
  }

  void ZeroSums() {
    for (int i = 0; i < config_.blocks * config_.tiles; ++i) {
      unit_.Zero(this, unit_.Vector(i));
    }
  }

  void ReduceGroup() {
    mov(u_, first_u_);
    ZeroSums();
    if (!HasChains()) {
      mov(blocks_left_, config_.input_blocks);
      return ReduceBlocks();
    }
    Xbyak::Label chain;
    mov(rest_, config_.input_blocks - config_.chain_blocks);
    mov(blocks_left_, config_.chain_blocks);
    ReduceBlocks();
    L(chain);
    StoreSums();
    ZeroSums();
    mov(blocks_left_, config_.chain_blocks);
    cmp(rest_, blocks_left_);
    cmovl(blocks_left_, rest_);
    sub(rest_, blocks_left_);
    ReduceBlocks();
    for (int i = 0; i < config_.blocks * config_.tiles; ++i)
      vaddps(unit_.Vector(i), unit_.Vector(i), ptr[m_ + i * VectorBytes()]);
    test(rest_, rest_);
    jnz(chain, T_NEAR);
  }

  // The input blocks of a chain, as many as blocks_left_ says.
  void ReduceBlocks() {
    Xbyak::Label block;
    L(block);
    for (int channel = 0; channel < lanes_; ++channel) ReduceChannel(channel);
    add(v_, GroupBlockBytes());
    add(u_, lanes_ * config_.blocks * VectorBytes());
    add(ahead_, AheadBytes());
    dec(blocks_left_);
    jnz(block, T_NEAR);
  }

  void ReduceChannel(int channel) {
    for (int block = 0; block < config_.blocks; ++block) {
      vmovups(Narrow(block, Weights(block)),
              ptr[u_ + (channel * config_.blocks + block) * VectorBytes()]);
      prefetcht0(ptr[u_ + (channel * config_.blocks + block) * VectorBytes() + kNearBytes]);
    }
    PrefetchNextMatrix(channel);
    for (int tile = 0; tile < config_.tiles; ++tile) {
      const int offset = tile * VectorBytes() + channel * 4 - VBias();
      if (EmbedsBroadcasts()) {
        vfmadd231ps(Narrow(0, Sum(0, tile)), Narrow(0, Weights(0)), ptr_b[v_ + offset]);
        continue;
      }
      const Xbyak::Xmm broadcast = Broadcast(tile);
      vbroadcastss(broadcast, ptr[v_ + offset]);
      for (int block = 0; block < config_.blocks; ++block) {
        vfmadd231ps(Narrow(block, Sum(block, tile)), Narrow(block, Weights(block)),
                    Narrow(block, broadcast));
      }
    }
  }

  // The next matrix comes from beyond the second cache. Its lines are prefetched while all groups
  // of this one are computed, at an even pace.
  void PrefetchNextMatrix(int channel) {
    const int lines = AheadBytes() / kLineBytes;
    for (int line = channel * lines / lanes_; line < (channel + 1) * lines / lanes_; ++line) {
      prefetcht1(ptr[ahead_ + line * kLineBytes]);
    }
  }

  // The bytes of the next matrix to prefetch per input block of a group.
  int AheadBytes() const {
    const int64_t lines = lanes_ * config_.blocks * VectorBytes() / kLineBytes;
    return static_cast<int>(DivUp(lines, config_.groups)) * kLineBytes;
  }

  void StoreSums() {
    for (int i = 0; i < config_.blocks * config_.tiles; ++i) {
      vmovups(ptr[m_ + i * VectorBytes()], unit_.Vector(i));
    }
  }

  void StoreGroup() {
    StoreSums();
    add(m_, config_.blocks * GroupBlockBytes());
  }

  const WinogradGemmConfig config_;
  const jit::VectorUnit unit_;
  const int lanes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateWinogradGemm(
    absl::string_view name, const WinogradGemmConfig& config) {
  return jit::Compile<WinogradGemmGenerator>(name, config);
}

}  // namespace tilewire::convolution
