// SPDX-License-Identifier: Apache-2.0
//
// A ModelInferRequest taken apart where it lies: the entries of raw_input_contents stay in gRPC's
// slices, everything else is gathered for protobuf. Thread-compatible.
#ifndef SERVICE_WIRE_WALK_H_
#define SERVICE_WIRE_WALK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/slice.h"

namespace tilewire::service {

// One entry of raw_input_contents, in order; the pieces point into the slices.
using Pieces = std::vector<absl::string_view>;

struct WireRequest {
  std::string fields;       // the message without raw_input_contents
  std::vector<Pieces> raw;  // its entries
};

// More inputs, outputs, raw entries or parameters than this are refused: each costs far more memory
// than its bytes.
constexpr int kMaxEntries = 1024;
// The same of parameters and contents of all inputs and outputs together; a typed field's packed
// elements are one entry.
constexpr int kMaxNestedEntries = 1 << 16;

// The slices must outlive the result.
//   kInvalidArgument  not a protobuf message (cut off, an unknown wire type), more than
//   kMaxEntries of one field, more than kMaxNestedEntries, or a shape of more than 1 KB
absl::StatusOr<WireRequest> WalkInferRequest(absl::Span<const grpc::Slice> slices);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_WALK_H_
