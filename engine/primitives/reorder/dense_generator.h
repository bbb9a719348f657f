// SPDX-License-Identifier: Apache-2.0
//
// The kernel of dense.cc: dst = convert(scale * src + sum_scale * dst).
#ifndef ENGINE_PRIMITIVES_REORDER_DENSE_GENERATOR_H_
#define ENGINE_PRIMITIVES_REORDER_DENSE_GENERATOR_H_

#include "absl/strings/string_view.h"
#include "engine/kernels/elements/dense_run.h"

namespace tilewire::reorder {

struct DenseConfig {
  // One: the constant of a run. Many: one per element, the second source.
  enum class Scales { kNone, kOne, kMany };
  VectorUnit unit;
  DataType src_type = DataType::kF32, dst_type = DataType::kF32;
  Scales scales = Scales::kNone;
  bool adds = false;
  float sum_scale = 1;
};

class DenseGenerator final : public DenseRunGenerator {
 public:
  DenseGenerator(absl::string_view name, const DenseConfig& config);

 private:
  void EmitConstants() override;
  void EmitVectors(int vectors) override;

  const DenseConfig config_;
};

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_DENSE_GENERATOR_H_
