// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reorder/dense_generator.h"

#include <vector>

namespace tilewire::reorder {
namespace {

constexpr int kOther = 4;  // vector register: of what dst holds, or of scales
constexpr int kSumScale = 5, kScale = 6;

std::vector<DataType> SourcesOf(const DenseConfig& config) {
  if (config.scales != DenseConfig::Scales::kMany) return {config.src_type};
  return {config.src_type, DataType::kF32};
}

}  // namespace

DenseGenerator::DenseGenerator(absl::string_view name, const DenseConfig& config)
    : DenseRunGenerator(name, {.unit = config.unit,
                               .srcs = SourcesOf(config),
                               .dst = config.dst_type,
                               .reads_dst = config.adds}),
      config_(config) {}

void DenseGenerator::EmitConstants() {
  if (config_.adds) Broadcast(Vector(kSumScale), config_.sum_scale);
  if (config_.scales == DenseConfig::Scales::kOne) vbroadcastss(Vector(kScale), ptr[constants_]);
}

void DenseGenerator::EmitVectors(int vectors) {
  const Xbyak::Xmm other = Vector(kOther);
  for (int v = 0; v < vectors; ++v) Load(0, v, Value(v));
  for (int v = 0; v < vectors; ++v) {
    const Xbyak::Xmm value = Value(v);
    if (config_.scales == DenseConfig::Scales::kOne) {
      vmulps(value, value, Vector(kScale));
    } else if (config_.scales == DenseConfig::Scales::kMany) {
      Load(1, v, other);
      vmulps(value, value, other);
    }
    if (config_.adds) {
      LoadDst(v, other);
      vmulps(other, other, Vector(kSumScale));
      vaddps(value, value, other);
    }
  }
}

}  // namespace tilewire::reorder
