// SPDX-License-Identifier: Apache-2.0
//
// The loops of kernels over a count of items that is left: whole groups of them first, then what
// remains. Used while generating; thread-compatible.
//
//   for (int vectors : {kUnroll, 1}) {
//     EmitWhileLeft(this, left_, vectors * lanes, [&] { ... });  // computes and advances
//   }
//   EmitIfLeft(this, left_, [&] { ... });  // under a mask
#ifndef ENGINE_KERNELS_PRODUCTS_COUNTED_LOOP_H_
#define ENGINE_KERNELS_PRODUCTS_COUNTED_LOOP_H_

#include "xbyak/xbyak.h"

namespace tilewire {

// Emits: while (left >= group) { body; left -= group; }
template <typename Body>
void EmitWhileLeft(Xbyak::CodeGenerator* generator, const Xbyak::Reg64& left, int group,
                   Body body) {
  Xbyak::Label step, done;
  generator->L(step);
  generator->cmp(left, group);
  generator->jl(done, Xbyak::CodeGenerator::T_NEAR);
  body();
  generator->sub(left, group);
  generator->jmp(step, Xbyak::CodeGenerator::T_NEAR);
  generator->L(done);
}

// Emits: if (left != 0) { body; }
template <typename Body>
void EmitIfLeft(Xbyak::CodeGenerator* generator, const Xbyak::Reg64& left, Body body) {
  Xbyak::Label end;
  generator->test(left, left);
  generator->jz(end, Xbyak::CodeGenerator::T_NEAR);
  body();
  generator->L(end);
}

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_COUNTED_LOOP_H_
