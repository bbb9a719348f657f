// SPDX-License-Identifier: Apache-2.0
//
// The largest values of an output's rows with their indices and labels, in the place of the values:
// what the parameter `classification` of a requested output asks for. Pure functions.
#ifndef SERVICE_WIRE_CLASSIFICATION_H_
#define SERVICE_WIRE_CLASSIFICATION_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/model.h"

namespace tilewire::service {

// An output is rows of classes, [N,C] or [N,C,1,1], or one row, [C], [1,C] or [C,1,1]. Where the
// first of several dimensions is open in the signature, it counts rows, whatever it is. Negative
// dims are open.
//   kInvalidArgument  it cannot be; the message says why
absl::Status CheckClassified(const TensorSpec& spec);

struct Classes {
  Dims shape;  // [rows, per row]; [per row] where there is one row and no dimension counts rows
  // The elements as BYTES travel: each has its length in four bytes ahead of it.
  std::string bytes;
};

// Called with the bytes by which the elements grow, a good many at a time, before they do.
using ChargeClasses = absl::FunctionRef<absl::Status(int64_t bytes)>;

// The `most` largest of each row, or all if there are fewer: largest first, of equal ones the lower
// index first, what is not a number last. Each is "value:index", or "value:index:label" where
// `labels` has a line for the index that is not empty; the value is the shortest decimal that gives
// the same number (FP16 and BF16: the same float).
// `spec` is the output's in the model's signature.
//   kInvalidArgument  as CheckClassified(), of the dims that the output has
//   what `charge` returned
absl::StatusOr<Classes> Classify(const OutputTensor& output, const TensorSpec& spec, int64_t most,
                                 absl::Span<const absl::string_view> labels, ChargeClasses charge);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_CLASSIFICATION_H_
