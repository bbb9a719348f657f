// SPDX-License-Identifier: Apache-2.0
//
// The memory that a message would occupy once protobuf has parsed it, estimated from its bytes: map
// entries, strings and small messages of a few bytes each occupy thirty times that. Pure functions.
#ifndef SERVICE_WIRE_MESSAGE_LIMITS_H_
#define SERVICE_WIRE_MESSAGE_LIMITS_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/model.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"

namespace tilewire::service {

// Messages, strings, bytes, map entries and unknown fields, at all depths; 64 bytes of packed
// integers count as one.
constexpr int64_t kMaxEntries = 1 << 17;

//   kInvalidArgument  not a message of this type (cut off, an unknown wire type), or more than
//                     kMaxEntries
absl::Status CheckEntries(const google::protobuf::Descriptor& type,
                          google::protobuf::io::ZeroCopyInputStream* bytes);

// Checks, then parses.
//   kInvalidArgument  as CheckEntries(), or bytes that cannot be decompressed
absl::Status ParseLimited(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

// Whether the inputs that every request of a model carries, or the outputs of every answer, fit
// into a message. A dimension that may vary counts as 1.
bool FitMessage(const std::vector<TensorSpec>& tensors, int64_t max_message_bytes);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_MESSAGE_LIMITS_H_
