// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of an ExecuteRequest to its message and its tensors' bytes, which stay where gRPC
// put them; and from the engine's outputs to an ExecuteResponse. Thread-compatible.
#ifndef SERVICE_WIRE_EXECUTE_REQUEST_H_
#define SERVICE_WIRE_EXECUTE_REQUEST_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/primitive_engine.h"
#include "grpcpp/support/byte_buffer.h"
#include "protos/tilewire.pb.h"
#include "service/wire/answer_pool.h"
#include "service/wire/byte_budget.h"
#include "service/wire/wire_walk.h"

namespace tilewire::service {

// Not movable: pieces point into it.
class ExecuteRequest {
 public:
  ExecuteRequest() = default;
  ExecuteRequest(const ExecuteRequest&) = delete;

  // Once, before anything else. The contents of inputs are not copied; of other large fields a copy
  // exists until this returns.
  //   kInvalidArgument  as WalkExecuteRequest() and CheckEntries()
  absl::Status Parse(const grpc::ByteBuffer& bytes, CopyFilter copied = AnyCopy);

  // Without the contents of the inputs.
  const v1::ExecuteRequest& message() const { return message_; }

  // The inputs with their descriptors; the pieces live as long as this object.
  //   kInvalidArgument    a descriptor that is malformed, `any`, or does not have as many bytes as
  //                       were sent; an argument that is given twice
  //   kResourceExhausted  tensors of more bytes than `budget` has left; they are spent from it
  absl::StatusOr<std::vector<PrimitiveInput>> Inputs(ByteBudget* budget) const;

 private:
  std::vector<grpc::Slice> slices_;
  WireRequest wire_;
  v1::ExecuteRequest message_;
};

// `answer` holds all but the outputs. A large output's bytes become a slice of the message, and
// return to `pool` when they have been written.
//   kResourceExhausted  the answer is larger than `max_bytes`
absl::Status EncodeExecuteResponse(const v1::ExecuteResponse& answer,
                                   std::vector<PrimitiveOutput> outputs, int64_t max_bytes,
                                   AnswerPool* pool, grpc::ByteBuffer* response);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_EXECUTE_REQUEST_H_
