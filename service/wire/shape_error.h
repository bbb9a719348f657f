// SPDX-License-Identifier: Apache-2.0
//
// Refusals of inputs whose shapes fit their specifications one by one but not the model together.
// Pure functions.
#ifndef SERVICE_WIRE_SHAPE_ERROR_H_
#define SERVICE_WIRE_SHAPE_ERROR_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/model.h"

namespace tilewire::service {

// Whether a tensor that the signature declares so has an open first dimension.
bool LeavesBatchOpen(const Dims& declared);

// The `error` of a run on `inputs`, which are in the signature's order. A kInvalidArgument comes
// from some node inside the model; where it says that shapes do not fit each other, and inputs that
// leave their batch (first dimension) open were given different ones, the message begins with
// these, as they are the likely cause. Batches that differ are not an error by themselves: some
// models take them.
absl::Status WithBatches(const absl::Status& error, const ModelSignature& signature,
                         const std::vector<InputTensor>& inputs);

// `most` 0: no bound.
//   kInvalidArgument  an input that leaves its batch open has a larger one
absl::Status CheckBatch(const ModelSignature& signature, const std::vector<InputTensor>& inputs,
                        int64_t most);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_SHAPE_ERROR_H_
