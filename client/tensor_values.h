// SPDX-License-Identifier: Apache-2.0
//
// The elements of a tensor of any type of the protocol but BYTES. Pure functions.
#ifndef CLIENT_TENSOR_VALUES_H_
#define CLIENT_TENSOR_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tensor.h"

namespace tilewire::client {

// FP16, BF16, FP32 or FP64.
bool IsFloatingPoint(absl::string_view datatype);

// Integers beyond 2^53 are rounded; BOOL is 0 or 1.
//   kInvalidArgument  BYTES, or a last element that is cut short
absl::StatusOr<std::vector<double>> NumbersOf(const Tensor& tensor);

// The first elements, `most` at most, without rounding: "7", "-0.25", "true". Errors as above.
absl::StatusOr<std::vector<std::string>> TextsOf(const Tensor& tensor, int64_t most);

}  // namespace tilewire::client

#endif  // CLIENT_TENSOR_VALUES_H_
