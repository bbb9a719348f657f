// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/random_descriptors/tensor_maker.h"

#include <limits>
#include <utility>

#include "engine/base/status_macros.h"

namespace tilewire::testing {

TensorMaker::TensorMaker(Random& random, int percent_f32)
    : random_(random),
      spoiled_(Chance(random, 25)),
      one_layout_(Chance(random, 60)),
      layout_(RandomLayoutChoice(random)),
      layout_seed_(random.Next()) {
  const int64_t percent = random.Integer(1, 100);
  if (percent <= percent_f32) return;
  if (percent <= 85) {
    src_ = Pick(random, {DataType::kU8, DataType::kS8});
    weights_ = DataType::kS8;
    bias_ = Pick(random, {DataType::kF32, DataType::kS32, DataType::kS8, DataType::kU8});
    dst_ = Pick(random, {DataType::kF32, DataType::kS32, DataType::kS8, DataType::kU8});
  } else if (percent <= 93) {
    src_ = weights_ = bias_ = dst_ = RandomType(random);
  } else {
    src_ = RandomType(random);
    weights_ = RandomType(random);
    bias_ = RandomType(random);
    dst_ = RandomType(random);
  }
}

absl::StatusOr<MemoryDesc> TensorMaker::Weights(const Dims& dims) {
  // Transformed weights, as a reorder makes them and a Winograd convolution takes them.
  if (Chance(random_, 3)) {
    WinogradLayout layout = {.tile = Pick(random_, {2, 4}),
                             .lanes = Pick(random_, {8, 16}),
                             .panel_blocks = Pick(random_, {1, 2})};
    if (layout.lanes == 16 && layout.panel_blocks == 2) layout.planes = Pick(random_, {0, 3});
    return MemoryDesc::CreateWinograd(dims, layout);
  }
  ABSL_ASSIGN_OR_RETURN(MemoryDesc desc, Tensor(dims, weights_));
  if (weights_ == DataType::kS8 && Chance(random_, 10)) {
    return desc.WithCompensation(static_cast<int>(random_.Integer(0, 7)));
  }
  if (weights_ == DataType::kS8 && Chance(random_, 30))
    return desc.WithBound(Pick(random_, {1, 64, 127}));
  return desc;
}

absl::StatusOr<MemoryDesc> TensorMaker::Bias(const Dims& dims) {
  if (Chance(random_, 50)) return MemoryDesc();
  return Tensor(dims, bias_);
}

int64_t TensorMaker::Number(int64_t value) { return Spoils(10) ? RandomExtreme(random_) : value; }

Dims TensorMaker::Numbers(Dims values) {
  for (int64_t& value : values) value = Number(value);
  if (Spoils(3)) values.push_back(1);
  return values;
}

float TensorMaker::Real() {
  if (Chance(random_, 90)) return random_.Uniform(0.1f, 2);
  reals_are_tame_ = false;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return Pick(random_, {0.0f, -1.0f, 1e30f, -1e30f, 1e-40f, kInfinity,
                        std::numeric_limits<float>::quiet_NaN()});
}

functions::EltwiseOp TensorMaker::Eltwise() {
  using functions::Function;
  int with_code = 0;  // the first of the table
  while (functions::HasCode(static_cast<Function>(with_code))) ++with_code;
  const int last = (Chance(random_, 90) ? with_code : functions::kRealFunctionCount) - 1;
  return {static_cast<Function>(random_.Integer(0, last)), Real(), Real()};
}

PropKind TensorMaker::Propagation() {
  if (Chance(random_, 97)) return PropKind::kForwardInference;
  return Pick(random_, {PropKind::kForwardTraining, PropKind::kBackwardData});
}

absl::StatusOr<MemoryDesc> TensorMaker::Tensor(Dims dims, DataType type) {
  if (Spoils(15)) {
    dims[random_.Integer(0, static_cast<int64_t>(dims.size()) - 1)] =
        Chance(random_, 50) ? RandomExtreme(random_) : RandomSize(random_);
  }
  if (Spoils(3)) dims.push_back(RandomSize(random_));
  if (Spoils(5)) type = RandomType(random_);
  if (one_layout_) return RandomLayout(dims, type, layout_, layout_seed_);
  return RandomLayout(dims, type, RandomLayoutChoice(random_), random_.Next());
}

}  // namespace tilewire::testing
