// SPDX-License-Identifier: Apache-2.0
//
// The scalar instructions of generated code between those that software runs in tests. A signal
// takes longer than all of them, so that the software runs them too instead of returning.
#ifndef TESTS_SUPPORT_VEX_SCALAR_STEP_H_
#define TESTS_SUPPORT_VEX_SCALAR_STEP_H_

#include <ucontext.h>

namespace tilewire::testing {

// Runs the instruction at RIP if it is one of these, all of 64 bits; flags are as the CPU sets
// them, but for AF, which stays. Usable in a signal handler.
//
//   lea r, [..]    mov r, r     add r, constant    sub r, constant    inc r    dec r
//   prefetch [..]  jnz label    jmp label          call r             ret
bool StepScalar(greg_t* registers);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_VEX_SCALAR_STEP_H_
