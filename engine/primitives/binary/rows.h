// SPDX-License-Identifier: Apache-2.0
//
// Binary functions by generated code (elementwise_kernel.h), shared by avx512_f32 and avx2_f32.
// Takes every layout whose elements all three tensors walk with constant steps: one layout on all
// sides, plain or blocked, with src1 broadcast along any dimensions.
#ifndef ENGINE_PRIMITIVES_BINARY_ROWS_H_
#define ENGINE_PRIMITIVES_BINARY_ROWS_H_

#include "engine/primitives/binary/binary.h"

namespace tilewire::binary {

absl::StatusOr<BinaryDesc> ResolveRows(const BinaryDesc& desc, const Attributes& attributes,
                                       const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const BinaryDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);

}  // namespace tilewire::binary

#endif  // ENGINE_PRIMITIVES_BINARY_ROWS_H_
