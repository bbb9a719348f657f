// SPDX-License-Identifier: Apache-2.0
//
// From the engine's outputs to the bytes of a ModelInferResponse. Thread-compatible.
#ifndef SERVICE_WIRE_RESPONSE_ENCODER_H_
#define SERVICE_WIRE_RESPONSE_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/model.h"
#include "grpcpp/support/byte_buffer.h"
#include "service/wire/answer_pool.h"

namespace tilewire::service {

struct AnsweredModel {
  const std::string& name;
  int64_t version;
  const std::string& request_id;
};

// Where the time of a request went: from when it was decoded until it ran; while it ran, and of
// that, the reorders of its inputs and outputs.
struct TimesOfRequest {
  absl::Duration queue, compute, reorder;
};

// Outputs up to this size, such as the scores of a thousand classes, are copied, which costs less
// than a slice of their own.
constexpr size_t kCopiedBytes = 4096;

// A larger output's bytes become a slice of the message that owns the engine's buffer: they are not
// copied, and return to `pool` when they have been written. `times`, not null, become parameters,
// together with the time that encoding takes.
void EncodeInferResponse(const AnsweredModel& model, const ModelSignature& signature,
                         std::vector<OutputTensor> outputs, AnswerPool* pool,
                         const TimesOfRequest* times, grpc::ByteBuffer* response);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_RESPONSE_ENCODER_H_
