// SPDX-License-Identifier: Apache-2.0
//
// A raw handler whose request is judged before protobuf parses it. Thread-safe.
#ifndef SERVICE_RPC_PARSED_REQUEST_H_
#define SERVICE_RPC_PARSED_REQUEST_H_

#include "absl/status/status.h"
#include "engine/base/status_macros.h"
#include "grpcpp/grpcpp.h"
#include "service/wire/message_limits.h"

namespace tilewire::service {

// Parses `request`, lets `work(const Request&, Response*)` answer, and serialises the answer.
//   what ParseLimited() and `work` return
//   kResourceExhausted  the answer is larger than `max_message_bytes`
template <typename Request, typename Response, typename Work>
absl::Status AnswerParsed(const grpc::ByteBuffer& request, int64_t max_message_bytes, Work work,
                          grpc::ByteBuffer* response) {
  Request parsed;
  ABSL_RETURN_IF_ERROR(ParseLimited(request, &parsed));
  Response answer;
  ABSL_RETURN_IF_ERROR(work(parsed, &answer));
  bool own_buffer = true;
  if (static_cast<int64_t>(answer.ByteSizeLong()) > max_message_bytes ||
      !grpc::SerializationTraits<Response>::Serialize(answer, response, &own_buffer).ok()) {
    return absl::ResourceExhaustedError("the answer is larger than a message may be");
  }
  return absl::OkStatus();
}

}  // namespace tilewire::service

#endif  // SERVICE_RPC_PARSED_REQUEST_H_
