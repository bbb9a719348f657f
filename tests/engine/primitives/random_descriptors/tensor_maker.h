// SPDX-License-Identifier: Apache-2.0
//
// Makes the tensors and numbers of one random descriptor. Types and layouts of a descriptor belong
// together in most cases, so that implementations take it; in one case of four some of its sizes,
// types and numbers are spoiled.
#ifndef TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_TENSOR_MAKER_H_
#define TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_TENSOR_MAKER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/functions/function.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/primitive.h"
#include "tests/engine/primitives/random_descriptors/random_layout.h"

namespace tilewire::testing {

class TensorMaker {
 public:
  // `percent_f32` of the descriptors are of f32 alone.
  explicit TensorMaker(Random& random, int percent_f32 = 60);

  Random& random() { return random_; }

  absl::StatusOr<MemoryDesc> Src(const Dims& dims) { return Tensor(dims, src_); }
  absl::StatusOr<MemoryDesc> Weights(const Dims& dims);
  // The zero descriptor in half of the cases.
  absl::StatusOr<MemoryDesc> Bias(const Dims& dims);
  absl::StatusOr<MemoryDesc> Dst(const Dims& dims) { return Tensor(dims, dst_); }

  absl::StatusOr<MemoryDesc> Typed(const Dims& dims, DataType type) { return Tensor(dims, type); }

  // `value`, or an extreme number in spoiled cases.
  int64_t Number(int64_t value);
  Dims Numbers(Dims values);
  // Small and positive in most cases, else zero, negative, huge or not finite.
  float Real();
  // Whether it has given nothing but small positive ones.
  bool reals_are_tame() const { return reals_are_tame_; }
  // A function of one real number; one that has generated code in most cases.
  functions::EltwiseOp Eltwise();
  PropKind Propagation();

 private:
  absl::StatusOr<MemoryDesc> Tensor(Dims dims, DataType type);
  bool Spoils(int percent) { return spoiled_ && Chance(random_, percent); }

  Random& random_;
  const bool spoiled_, one_layout_;
  const LayoutChoice layout_;
  const uint64_t layout_seed_;
  bool reals_are_tame_ = true;
  DataType src_ = DataType::kF32, weights_ = DataType::kF32, bias_ = DataType::kF32,
           dst_ = DataType::kF32;
};

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_RANDOM_DESCRIPTORS_TENSOR_MAKER_H_
