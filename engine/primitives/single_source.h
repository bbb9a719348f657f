// SPDX-License-Identifier: Apache-2.0
//
// A primitive that writes dst from src alone, both from their first elements on. Src and Dst hold
// an element each, or a part of one. Immutable once created.
#ifndef ENGINE_PRIMITIVES_SINGLE_SOURCE_H_
#define ENGINE_PRIMITIVES_SINGLE_SOURCE_H_

#include <utility>

#include "engine/memory/zero_padding.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

template <typename Src, typename Dst = Src>
class SingleSource : public Primitive {
 protected:
  // RunOn() may leave numbers in what pads dst where it `spoils_padding`.
  explicit SingleSource(PrimitiveInfo info, bool spoils_padding = false)
      : Primitive(std::move(info)), spoils_padding_(spoils_padding) {}

  virtual void RunOn(const Src* src, Dst* dst, const threading::Team& team) const = 0;

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const final {
    RunOn(First<const Src>(args, kArgSrc), First<Dst>(args, kArgDst), team);
    if (spoils_padding_) ZeroPadding(Desc(kArgDst), args.Find(kArgDst));
  }

  const bool spoils_padding_;
};

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_SINGLE_SOURCE_H_
