// SPDX-License-Identifier: Apache-2.0
//
// Requests with tensors taken apart where they lie: the tensors' bytes stay in gRPC's slices,
// everything else is gathered for protobuf. Thread-compatible.
#ifndef SERVICE_WIRE_WIRE_WALK_H_
#define SERVICE_WIRE_WIRE_WALK_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/slice.h"

namespace tilewire::service {

// Bytes in order; the pieces point into the slices.
using Pieces = std::vector<absl::string_view>;

// May be used for one message after the other, and keeps its memory.
struct WireRequest {
  std::string fields;        // the message without its entries
  Pieces pieces;             // of all entries
  std::vector<size_t> ends;  // where in `pieces` each entry ends

  size_t raw_count() const { return ends.size(); }
  absl::Span<const absl::string_view> raw(size_t entry) const {
    const size_t begin = entry == 0 ? 0 : ends[entry - 1];
    return absl::MakeConstSpan(pieces).subspan(begin, ends[entry] - begin);
  }
};

// More inputs, outputs, raw entries or parameters than this are refused: no model has as many, and
// each is answered or looked up.
constexpr int kMaxFieldEntries = 1024;

// Called with the bytes of a large field before it is gathered; a status that is not OK ends the
// walk with it.
using CopyFilter = absl::FunctionRef<absl::Status(int64_t bytes)>;
inline absl::Status AnyCopy(int64_t) { return absl::OkStatus(); }

// The slices must outlive what is written to `request`. The entries are those of
// raw_input_contents, or the content of each of an ExecuteRequest's inputs, present or not.
//   kInvalidArgument  not a protobuf message (cut off, an unknown wire type), or more than
//                     kMaxFieldEntries of one field
absl::Status WalkInferRequest(absl::Span<const grpc::Slice> slices, CopyFilter copied,
                              WireRequest* request);
absl::Status WalkExecuteRequest(absl::Span<const grpc::Slice> slices, CopyFilter copied,
                                WireRequest* request);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_WIRE_WALK_H_
