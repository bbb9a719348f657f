// SPDX-License-Identifier: Apache-2.0
//
// Emits loads and stores of the first lanes of an f32 vector, for what is left behind the last
// whole one: bytes of the other lanes are neither read nor written. Used while generating;
// thread-compatible.
#ifndef ENGINE_PRIMITIVES_SOFTMAX_PARTIAL_VECTOR_H_
#define ENGINE_PRIMITIVES_SOFTMAX_PARTIAL_VECTOR_H_

#include "engine/cpu/isa.h"
#include "xbyak/xbyak.h"

namespace tilewire::softmax {

class PartialVector {
 public:
  struct Registers {
    Xbyak::Reg64 spare;   // overwritten by Prepare()
    Xbyak::Opmask lanes;  // AVX-512: kept from Prepare() on
    int mask = 15;        // AVX2: the vector register that is kept from Prepare() on
  };

  // `count` of the vector's lanes, >= 1.
  PartialVector(Xbyak::CodeGenerator* generator, cpu::Isa isa, int count, Registers registers)
      : generator_(generator),
        avx512_(isa >= cpu::Isa::kAvx512),
        count_(count),
        registers_(registers) {}

  void Prepare();
  void Load(const Xbyak::Xmm& vector, const Xbyak::Address& from);  // zeros in the other lanes
  void Store(const Xbyak::Address& to, const Xbyak::Xmm& vector);
  // The other lanes become those of `other`.
  void Replace(const Xbyak::Xmm& vector, const Xbyak::Xmm& other);
  void EmitTable();  // behind the last ret

 private:
  Xbyak::Ymm Mask() const { return Xbyak::Ymm(registers_.mask); }

  Xbyak::CodeGenerator* const generator_;
  const bool avx512_;
  const int count_;
  const Registers registers_;
  Xbyak::Label table_;
};

}  // namespace tilewire::softmax

#endif  // ENGINE_PRIMITIVES_SOFTMAX_PARTIAL_VECTOR_H_
