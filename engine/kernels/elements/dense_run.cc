// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/elements/dense_run.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/kernels/products/counted_loop.h"

namespace tilewire {

DenseRunGenerator::DenseRunGenerator(absl::string_view name, Config config)
    : Generator(name),
      config_(std::move(config)),
      conversion_(this, config_.unit, /*tail_lanes=*/0,
                  {.spare = r11, .scratch = {9, 10, 11}, .tail = k2, .mask = k3}) {}

void DenseRunGenerator::Emit() {
  mov(srcs_, ptr[rdi + offsetof(Args, srcs)]);
  mov(dst_, ptr[rdi + offsetof(Args, dst)]);
  mov(left_, ptr[rdi + offsetof(Args, vectors)]);
  mov(constants_, ptr[rdi + offsetof(Args, constants)]);
  xor_(element_.cvt32(), element_.cvt32());
  if (HasOneSource()) mov(src_, ptr[srcs_]);
  if (config_.dst) conversion_.BeginStores(*config_.dst);
  EmitConstants();
  for (int vectors : {kUnroll, 1}) {
    EmitWhileLeft(this, left_, vectors, [&] {
      loaded_ = -1;
      EmitVectors(vectors);
      for (int v = 0; config_.dst && v < vectors; ++v)
        conversion_.Store(*config_.dst, Value(v), At(dst_, *config_.dst, v), /*tail=*/false);
      EmitAdvance(vectors * unit().lanes());
    });
  }
  EmitResults();
  vzeroupper();
  ret();
  EmitTables();
  conversion_.EmitTable();
}

// An index costs a micro-operation more: with one source both pointers move instead.
void DenseRunGenerator::EmitAdvance(int elements) {
  if (!HasOneSource()) return add(element_, elements);
  add(src_, elements * static_cast<int>(SizeOf(config_.srcs[0])));
  if (config_.dst) add(dst_, elements * static_cast<int>(SizeOf(*config_.dst)));
}

Xbyak::RegExp DenseRunGenerator::At(const Xbyak::Reg64& base, DataType type, int v) const {
  const int size = static_cast<int>(SizeOf(type)), offset = v * unit().lanes() * size;
  return HasOneSource() ? base + offset : base + element_ * size + offset;
}

void DenseRunGenerator::Load(int src, int v, const Xbyak::Xmm& to) {
  if (!HasOneSource() && src != loaded_)
    mov(src_, ptr[srcs_ + src * static_cast<int>(sizeof(std::byte*))]);
  loaded_ = src;
  conversion_.Load(config_.srcs[src], to, At(src_, config_.srcs[src], v), /*tail=*/false);
}

void DenseRunGenerator::LoadDst(int v, const Xbyak::Xmm& to) {
  conversion_.Load(*config_.dst, to, At(dst_, *config_.dst, v), /*tail=*/false);
}

void DenseRunGenerator::Broadcast(const Xbyak::Xmm& to, float value) {
  conversion_.Broadcast(to, std::bit_cast<uint32_t>(value));
}

void DenseRunGenerator::Run(absl::Span<const std::byte* const> srcs, std::byte* dst, int64_t count,
                            const void* constants) const {
  using Lanes = std::array<std::byte, 16 * sizeof(float)>;
  const auto function = entry<void (*)(const Args*)>();
  const int64_t vectors = count / unit().lanes(), done = vectors * unit().lanes();
  if (vectors > 0) {
    const Args whole = {srcs.data(), dst, vectors, constants};
    function(&whole);
  }
  if (done == count) return;
  absl::InlinedVector<Lanes, 4> last(srcs.size(), Lanes{});
  absl::InlinedVector<const std::byte*, 4> last_srcs;
  for (size_t i = 0; i < srcs.size(); ++i) {
    const int64_t size = SizeOf(config_.srcs[i]);
    std::memcpy(last[i].data(), srcs[i] + done * size, (count - done) * size);
    last_srcs.push_back(last[i].data());
  }
  const int64_t size = config_.dst ? SizeOf(*config_.dst) : 0;
  Lanes to = {};
  if (config_.reads_dst) std::memcpy(to.data(), dst + done * size, (count - done) * size);
  const Args rest = {last_srcs.data(), config_.dst ? to.data() : dst, 1, constants};
  function(&rest);
  if (config_.dst) std::memcpy(dst + done * size, to.data(), (count - done) * size);
}

}  // namespace tilewire
