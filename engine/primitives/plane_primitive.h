// SPDX-License-Identifier: Apache-2.0
//
// The base of primitives that are a product by planes of bf16 (engine/kernels/plane_product.h): a
// derived class says where the rows of its source lie.
//
// Immutable once created.
#ifndef ENGINE_PRIMITIVES_PLANE_PRIMITIVE_H_
#define ENGINE_PRIMITIVES_PLANE_PRIMITIVE_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "engine/kernels/plane_product.h"
#include "engine/memory/data_type.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

class PlanePrimitive : public Primitive {
 protected:
  // `info` without scratchpad and code, which are those of the product.
  PlanePrimitive(PrimitiveInfo info, std::unique_ptr<const PlaneProduct> product)
      : Primitive(WithSizes(std::move(info), *product)), product_(std::move(product)) {}

  // The first element of an argument; null where the primitive has none.
  std::byte* At(const ExecuteArgs& args, int arg) const {
    const MemoryDesc& desc = Desc(arg);
    if (desc.IsZero()) return nullptr;
    return args.Get<std::byte>(arg) + desc.offset0() * SizeOf(desc.data_type());
  }

  void Multiply(const PlaneRows& src, const ExecuteArgs& args, std::byte* scratchpad,
                const threading::Team& team) const {
    product_->Run({.src = &src,
                   .weights = At(args, kArgWeights),
                   .bias = At(args, kArgBias),
                   .dst = At(args, kArgDst)},
                  scratchpad, team);
  }

 private:
  static PrimitiveInfo WithSizes(PrimitiveInfo info, const PlaneProduct& product) {
    info.code_bytes = product.code_bytes();
    info.scratchpad_bytes = product.scratchpad_bytes();
    return info;
  }

  const std::unique_ptr<const PlaneProduct> product_;
};

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_PLANE_PRIMITIVE_H_
