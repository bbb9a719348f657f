// SPDX-License-Identifier: Apache-2.0
//
// In which type sums of products are computed.
#ifndef ENGINE_PRIMITIVES_MATMUL_TYPED_ROWS_H_
#define ENGINE_PRIMITIVES_MATMUL_TYPED_ROWS_H_

#include <cstdint>
#include <type_traits>

namespace tilewire::matmul {

// The type of sums of elements that T holds: unsigned for integers, so that they wrap around, and
// wide enough that the product of two is not computed in a narrower signed type.
template <typename T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, T,
                                 std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

}  // namespace tilewire::matmul

#endif  // ENGINE_PRIMITIVES_MATMUL_TYPED_ROWS_H_
