// SPDX-License-Identifier: Apache-2.0
//
// Between types in one dense layout, whatever it is, with output scales along any dimensions and a
// sum, shared by avx512_dense and avx2_dense. In the order of memory the loops over dimensions and
// blocks that the scales vary along alternate with those that they do not vary along. The innermost
// such groups make a run, whose scale is one number (nchw, a scale for each channel) or a row of
// numbers that repeats (nhwc, nChw16c); a generated kernel converts the whole vectors of a run, and
// the elements that are left through vectors on the stack.
#ifndef ENGINE_PRIMITIVES_REORDER_DENSE_H_
#define ENGINE_PRIMITIVES_REORDER_DENSE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/reorder/implementations.h"

namespace tilewire::reorder {

// kUnimplemented with the reason.
absl::StatusOr<ReorderDesc> ResolveDense(const ReorderDesc& desc, const Attributes& attributes,
                                         const ImplementationFacts& facts);

// kResourceExhausted.
absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const ReorderDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts);

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_DENSE_H_
