// SPDX-License-Identifier: Apache-2.0
//
// The dot products of AVX-VNNI on a machine without them. A test that depends on this library runs
// generated code for AVX2 with VNNI on every CPU with AVX2: where the machine has no AVX-VNNI, each
// of these instructions faults, and a handler of SIGILL computes what it would have done. Such a
// process finds cpu::Isa::kAvx2Vnni in cpu::BestIsa(). Where the machine has them, nothing is
// replaced. Other instructions that fault go to the handler that was there before.
#ifndef TESTS_SUPPORT_AVX_VNNI_DOT_PRODUCT_EMULATOR_H_
#define TESTS_SUPPORT_AVX_VNNI_DOT_PRODUCT_EMULATOR_H_

namespace tilewire::testing {

// Whether this process computes them in software. It is decided before main() begins.
bool DotProductsAreEmulated();

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_AVX_VNNI_DOT_PRODUCT_EMULATOR_H_
