// SPDX-License-Identifier: Apache-2.0
//
// The kernel of dense.cc: dst = convert(scale * src + sum_scale * dst) over whole vectors.
#ifndef ENGINE_PRIMITIVES_REORDER_DENSE_GENERATOR_H_
#define ENGINE_PRIMITIVES_REORDER_DENSE_GENERATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/elements/vector_conversion.h"

namespace tilewire::reorder {

struct DenseArgs {
  const std::byte* src;
  std::byte* dst;
  const float* scales;  // one, or one per element
  int64_t vectors;      // >= 1
};

struct DenseConfig {
  enum class Scales { kNone, kOne, kMany };
  VectorUnit unit;
  DataType src_type = DataType::kF32, dst_type = DataType::kF32;
  Scales scales = Scales::kNone;
  bool adds = false;
  float sum_scale = 1;
};

class DenseGenerator final : public jit::Generator {
 public:
  DenseGenerator(absl::string_view name, const DenseConfig& config);

 private:
  void Emit() override;
  void EmitLoop(int vectors);
  void EmitVector(int index);
  Xbyak::Xmm Vector(int index) const { return config_.unit.Vector(index); }

  // Arguments arrive in rdi.
  const Xbyak::Reg64 src_ = rsi, dst_ = rdx, scales_ = r8;
  const Xbyak::Reg64 left_ = rcx;  // vectors not yet written
  const DenseConfig config_;
  VectorConversion conversion_;
};

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_DENSE_GENERATOR_H_
