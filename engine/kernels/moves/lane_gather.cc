// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/moves/lane_gather.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

enum class Method { kNone, kMaskedPermute, kBlendedPermute, kShuffledBytes };

Method MethodOf(const LaneGatherConfig& config) {
  const int bytes = config.lanes * config.element_bytes;
  const bool masks = config.unit.has_masks();
  if (masks && config.element_bytes == 4 && (bytes == 64 || bytes == 32)) {
    return Method::kMaskedPermute;
  }
  if (masks && config.element_bytes == 2 && (bytes == 32 || bytes == 16)) {
    return Method::kMaskedPermute;
  }
  if (config.element_bytes == 4 && bytes == 32) return Method::kBlendedPermute;
  return bytes == 16 || bytes == 8 ? Method::kShuffledBytes : Method::kNone;
}

int SourceCount(const LanePattern& pattern) {
  int count = 0;
  for (const LaneSource& lane : pattern) count = std::max(count, lane.source + 1);
  return count;
}

class LaneGatherGenerator final : public jit::Generator {
 public:
  LaneGatherGenerator(absl::string_view name, const LaneGatherConfig& config,
                      absl::Span<const LanePattern> patterns)
      : Generator(name),
        config_(config),
        method_(MethodOf(config)),
        vector_bytes_(config.lanes * config.element_bytes),
        unit_(config.unit.WithBytes(vector_bytes_)),
        patterns_(patterns.begin(), patterns.end()) {}

  const std::vector<size_t>& entries() const { return entries_; }  // of the patterns, in bytes

 private:
  static constexpr int kUnroll = 4;  // pixels, each in a vector of its own: 0 to 3
  static constexpr int kMoved = 4;   // the vector that holds moved lanes before they are joined
  static constexpr int kFirstIndices = 5;

  const Xbyak::Reg64 args_ = rdi;
  const Xbyak::Reg64 sources_ = rsi;
  const Xbyak::Reg64 dst_ = rdx;  // of the current pixel
  const Xbyak::Reg64 at_ = rcx;   // bytes of the run already done
  const Xbyak::Reg64 left_ = r8;  // bytes still to do
  const Xbyak::Reg64 source_ = r9;
  const Xbyak::Reg64 mask_ = rax;
  const Xbyak::Opmask lanes_ = k1;  // that come from the current source

  const LaneGatherConfig config_;
  const Method method_;
  const int vector_bytes_;  // of a block
  const jit::VectorUnit unit_;
  const std::vector<LanePattern> patterns_;
  std::vector<size_t> entries_;

  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }

  void Emit() override {
    for (const LanePattern& pattern : patterns_) {
      align(16);
      entries_.push_back(getSize());
      EmitFunction(pattern);
    }
  }

  void EmitFunction(const LanePattern& pattern) {
    std::vector<Xbyak::Label> tables(SourceCount(pattern));
    mov(sources_, ptr[args_ + offsetof(LaneGatherArgs, sources)]);
    mov(dst_, ptr[args_ + offsetof(LaneGatherArgs, dsts)]);
    mov(dst_, ptr[dst_]);
    mov(left_, ptr[args_ + offsetof(LaneGatherArgs, bytes)]);
    xor_(at_, at_);
    if (method_ != Method::kShuffledBytes) {
      for (size_t s = 0; s < tables.size(); ++s) {
        vmovups(Vector(kFirstIndices + static_cast<int>(s)), ptr[rip + tables[s]]);
      }
    }
    for (int pixels : {kUnroll, 1}) {
      Xbyak::Label loop, end;
      L(loop);
      cmp(left_, pixels * vector_bytes_);
      jl(end, T_NEAR);
      EmitPixels(pattern, pixels, tables);
      add(at_, pixels * vector_bytes_);
      sub(left_, pixels * vector_bytes_);
      jmp(loop, T_NEAR);
      L(end);
    }
    vzeroupper();
    ret();
    for (size_t s = 0; s < tables.size(); ++s) EmitTable(pattern, static_cast<int>(s), &tables[s]);
  }

  void EmitPixels(const LanePattern& pattern, int pixels, std::vector<Xbyak::Label>& tables) {
    for (int s = 0; s < static_cast<int>(tables.size()); ++s) {
      mov(source_, ptr[sources_ + s * static_cast<int>(sizeof(void*))]);
      if (method_ == Method::kMaskedPermute) {
        mov(mask_.cvt32(), LaneBits(pattern, s));
        kmovd(lanes_, mask_.cvt32());
      }
      for (int p = 0; p < pixels; ++p) {
        const Xbyak::Address from = ptr[source_ + at_ + p * vector_bytes_];
        switch (method_) {
          case Method::kMaskedPermute:
            PermuteUnderMask(p, s, from);
            break;
          case Method::kBlendedPermute:
            PermuteAndBlend(p, s, from, LaneBits(pattern, s));
            break;
          default:
            ShuffleBytes(p, s, from, tables[s]);
        }
      }
    }
    for (int p = 0; p < pixels; ++p) Store(ptr[dst_ + at_ + p * vector_bytes_], Vector(p));
  }

  // The first source writes the whole vector, with zeros in the lanes of the others.
  void PermuteUnderMask(int pixel, int source, const Xbyak::Address& from) {
    const int indices = kFirstIndices + source;
    if (config_.element_bytes == 2) {
      vpermw(source == 0 ? Vector(pixel) | lanes_ | T_z : Vector(pixel) | lanes_, Vector(indices),
             from);
    } else {
      vpermd(source == 0 ? unit_.Wide(pixel) | lanes_ | T_z : unit_.Wide(pixel) | lanes_,
             unit_.Wide(indices), from);
    }
  }

  void PermuteAndBlend(int pixel, int source, const Xbyak::Address& from, uint32_t lanes) {
    const Xbyak::Ymm to(pixel), moved(kMoved), indices(kFirstIndices + source);
    if (source == 0) vpxor(to, to, to);
    vpermps(moved, indices, from);
    vblendps(to, to, moved, static_cast<uint8_t>(lanes));
  }

  void ShuffleBytes(int pixel, int source, const Xbyak::Address& from, const Xbyak::Label& table) {
    const Xbyak::Xmm to(pixel), moved(source == 0 ? pixel : kMoved);
    if (vector_bytes_ == 8) {
      vmovq(moved, from);
    } else {
      vmovdqu(moved, from);
    }
    vpshufb(moved, moved, ptr[rip + table]);
    if (source != 0) vpor(to, to, moved);
  }

  void Store(const Xbyak::Address& to, const Xbyak::Xmm& from) {
    if (vector_bytes_ == 8) {
      vmovq(to, from);
    } else {
      vmovups(to, from);
    }
  }

  static uint32_t LaneBits(const LanePattern& pattern, int source) {
    uint32_t bits = 0;
    for (size_t lane = 0; lane < pattern.size(); ++lane) {
      if (pattern[lane].source == source) bits |= 1u << lane;
    }
    return bits;
  }

  // Indices of lanes, or of bytes (0x80: a zero).
  void EmitTable(const LanePattern& pattern, int source, Xbyak::Label* label) {
    align(vector_bytes_ == 8 ? 16 : vector_bytes_);
    L(*label);
    for (const LaneSource& lane : pattern) {
      const bool here = lane.source == source;
      if (method_ != Method::kShuffledBytes) {
        for (int byte = 0; byte < config_.element_bytes; ++byte) {
          db(byte == 0 && here ? lane.lane : 0);
        }
        continue;
      }
      for (int byte = 0; byte < config_.element_bytes; ++byte) {
        db(here ? lane.lane * config_.element_bytes + byte : 0x80);
      }
    }
    for (int byte = vector_bytes_; byte < 16; ++byte) db(0x80);
  }
};

}  // namespace

absl::Status RequireLaneGather(const LaneGatherConfig& config) {
  if (MethodOf(config) != Method::kNone) return absl::OkStatus();
  return Unimplemented("vectors of ", config.unit.bytes(), " bytes cannot move ", config.lanes,
                       " lanes of ", config.element_bytes, " bytes");
}

absl::StatusOr<LaneGather> CompileLaneGather(absl::string_view name, const LaneGatherConfig& config,
                                             absl::Span<const LanePattern> patterns) {
  ABSL_RETURN_IF_ERROR(RequireLaneGather(config));
  ABSL_ASSIGN_OR_RETURN(auto code, jit::Compile<LaneGatherGenerator>(name, config, patterns));
  return LaneGather::Of(std::move(code));
}

}  // namespace tilewire
