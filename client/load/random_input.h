// SPDX-License-Identifier: Apache-2.0
//
// Deterministic inputs for models. Thread-safe.
#ifndef CLIENT_LOAD_RANDOM_INPUT_H_
#define CLIENT_LOAD_RANDOM_INPUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace tilewire::client {

// Values in [0, 1) for floating point, 0 or 1 elsewhere; an open first dimension becomes `batch`,
// other open ones `free_size`. `seed` makes another tensor.
//   kUnimplemented    datatype BYTES
//   kInvalidArgument  more bytes than a message can hold
absl::StatusOr<Tensor> RandomInput(const TensorMetadata& metadata, int64_t batch, int64_t free_size,
                                   Layout layout, uint64_t seed);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_RANDOM_INPUT_H_
