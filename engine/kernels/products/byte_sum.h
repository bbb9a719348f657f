// SPDX-License-Identifier: Apache-2.0
#ifndef ENGINE_KERNELS_PRODUCTS_BYTE_SUM_H_
#define ENGINE_KERNELS_PRODUCTS_BYTE_SUM_H_

#include <cstdint>

namespace tilewire {

// The sum of neighbouring elements, s8 or u8. Pure; thread-safe.
int32_t SumOfBytes(const uint8_t* bytes, int64_t count, bool is_signed);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_BYTE_SUM_H_
