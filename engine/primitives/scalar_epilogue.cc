// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/scalar_epilogue.h"

#include <variant>

namespace tilewire {

float ApplyPostOps(const PostOps& post_ops, float value, float before) {
  for (const PostOp& entry : post_ops.entries()) {
    if (const auto* eltwise = std::get_if<EltwisePostOp>(&entry)) {
      value = eltwise->scale * jit::EltwiseScalar(eltwise->op, value);
    } else {
      value += std::get<SumPostOp>(entry).scale * before;
    }
  }
  return value;
}

}  // namespace tilewire
