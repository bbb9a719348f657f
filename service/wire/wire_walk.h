// SPDX-License-Identifier: Apache-2.0
//
// A ModelInferRequest taken apart where it lies: the entries of raw_input_contents stay in gRPC's
// slices, everything else is gathered for protobuf. Thread-compatible.
#ifndef SERVICE_WIRE_WIRE_WALK_H_
#define SERVICE_WIRE_WIRE_WALK_H_

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

// More inputs, outputs, raw entries or parameters than this are refused: no model has as many, and
// each is answered or looked up.
constexpr int kMaxFieldEntries = 1024;

// The slices must outlive the result.
//   kInvalidArgument  not a protobuf message (cut off, an unknown wire type), or more than
//                     kMaxFieldEntries of one field
absl::StatusOr<WireRequest> WalkInferRequest(absl::Span<const grpc::Slice> slices);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_WIRE_WALK_H_
