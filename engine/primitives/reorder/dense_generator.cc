// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reorder/dense_generator.h"

#include <bit>

#include "engine/kernels/products/counted_loop.h"

namespace tilewire::reorder {
namespace {

constexpr int kUnroll = 4;
constexpr int kBefore = 4, kSumScale = 5, kScale = 6;  // vector registers after the unrolled ones

}  // namespace

DenseGenerator::DenseGenerator(absl::string_view name, const DenseConfig& config)
    : Generator(name),
      config_(config),
      conversion_(this, config.unit, /*tail_lanes=*/0,
                  {.spare = rax, .scratch = {9, 10, 11}, .tail = k1, .mask = k2}) {}

void DenseGenerator::Emit() {
  mov(src_, ptr[rdi + offsetof(DenseArgs, src)]);
  mov(dst_, ptr[rdi + offsetof(DenseArgs, dst)]);
  mov(scales_, ptr[rdi + offsetof(DenseArgs, scales)]);
  mov(left_, ptr[rdi + offsetof(DenseArgs, vectors)]);
  conversion_.BeginStores(config_.dst_type);
  if (config_.adds) {
    conversion_.Broadcast(Vector(kSumScale), std::bit_cast<uint32_t>(config_.sum_scale));
  }
  if (config_.scales == DenseConfig::Scales::kOne) vbroadcastss(Vector(kScale), ptr[scales_]);
  EmitLoop(kUnroll);
  EmitLoop(1);
  vzeroupper();
  ret();
  conversion_.EmitTable();
}

// Takes `vectors` per step while as many are left.
void DenseGenerator::EmitLoop(int vectors) {
  EmitWhileLeft(this, left_, vectors, [&] {
    for (int v = 0; v < vectors; ++v) EmitVector(v);
    const int elements = vectors * config_.unit.lanes();
    add(src_, elements * static_cast<int>(SizeOf(config_.src_type)));
    add(dst_, elements * static_cast<int>(SizeOf(config_.dst_type)));
    if (config_.scales == DenseConfig::Scales::kMany) {
      add(scales_, elements * static_cast<int>(sizeof(float)));
    }
  });
}

void DenseGenerator::EmitVector(int index) {
  const Xbyak::Xmm value = Vector(index), before = Vector(kBefore);
  const int element = index * config_.unit.lanes();
  const Xbyak::RegExp dst = dst_ + element * static_cast<int>(SizeOf(config_.dst_type));
  conversion_.Load(config_.src_type, value,
                   src_ + element * static_cast<int>(SizeOf(config_.src_type)), /*tail=*/false);
  if (config_.scales == DenseConfig::Scales::kOne) {
    vmulps(value, value, Vector(kScale));
  } else if (config_.scales == DenseConfig::Scales::kMany) {
    vmulps(value, value, ptr[scales_ + element * static_cast<int>(sizeof(float))]);
  }
  if (config_.adds) {
    conversion_.Load(config_.dst_type, before, dst, /*tail=*/false);
    vmulps(before, before, Vector(kSumScale));
    vaddps(value, value, before);
  }
  conversion_.Store(config_.dst_type, value, dst, /*tail=*/false);
}

}  // namespace tilewire::reorder
