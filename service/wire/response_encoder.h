// SPDX-License-Identifier: Apache-2.0
//
// From the engine's outputs to the bytes of a ModelInferResponse. Thread-compatible.
#ifndef SERVICE_WIRE_RESPONSE_ENCODER_H_
#define SERVICE_WIRE_RESPONSE_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model.h"
#include "grpcpp/support/byte_buffer.h"
#include "service/wire/answer_pool.h"

namespace tilewire::service {

struct AnsweredModel {
  const std::string& name;
  int64_t version;
  const std::string& request_id;
};

// Outputs up to this size, such as the scores of a thousand classes, are copied, which costs less
// than a slice of their own.
constexpr size_t kCopiedBytes = 4096;

// A larger output's bytes become a slice of the message that owns the engine's buffer: they are not
// copied, and return to `pool` when they have been written.
void EncodeInferResponse(const AnsweredModel& model, const ModelSignature& signature,
                         std::vector<OutputTensor> outputs, AnswerPool* pool,
                         grpc::ByteBuffer* response);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_RESPONSE_ENCODER_H_
