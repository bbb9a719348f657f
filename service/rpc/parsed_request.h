// SPDX-License-Identifier: Apache-2.0
//
// Raw handlers whose request is judged before protobuf parses it. Thread-safe.
#ifndef SERVICE_RPC_PARSED_REQUEST_H_
#define SERVICE_RPC_PARSED_REQUEST_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "service/rpc/call_host.h"
#include "service/rpc/job.h"
#include "service/wire/message_limits.h"

namespace tilewire::service {

//   kResourceExhausted  the answer is larger than `max_message_bytes`
template <typename Response>
absl::Status SerializeAnswer(const Response& answer, int64_t max_message_bytes,
                             grpc::ByteBuffer* response) {
  bool own_buffer = true;
  if (static_cast<int64_t>(answer.ByteSizeLong()) > max_message_bytes ||
      !grpc::SerializationTraits<Response>::Serialize(answer, response, &own_buffer).ok()) {
    return absl::ResourceExhaustedError("the answer is larger than a message may be");
  }
  return absl::OkStatus();
}

// A request that holds names and numbers only, answered on the thread that received it: parses
// `request`, lets `work(const Request&, Response*)` answer, and serialises the answer.
//   what ParseLimited(), `work` and SerializeAnswer() return
template <typename Request, typename Response, typename Work>
absl::StatusOr<OwnedJob> AnswerNames(const CallHost& host, const grpc::ByteBuffer& request,
                                     grpc::ByteBuffer* response, Work work) {
  Request parsed;
  ABSL_RETURN_IF_ERROR(ParseLimited(request, &parsed));
  Response message;
  ABSL_RETURN_IF_ERROR(work(parsed, &message));
  ABSL_RETURN_IF_ERROR(SerializeAnswer(message, host.max_message_bytes, response));
  return OwnedJob();
}

}  // namespace tilewire::service

#endif  // SERVICE_RPC_PARSED_REQUEST_H_
