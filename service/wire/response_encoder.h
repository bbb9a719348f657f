// SPDX-License-Identifier: Apache-2.0
//
// From the engine's outputs to the bytes of a ModelInferResponse. Thread-compatible.
#ifndef SERVICE_WIRE_RESPONSE_ENCODER_H_
#define SERVICE_WIRE_RESPONSE_ENCODER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
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

// How an answer differs from the plain one.
struct AnswerForm {
  // For each output: how many classes it is told as; 0: as its values. Empty: all as values.
  absl::Span<const int64_t> classes;
  // The labels of an output of the model, for those that are told as classes.
  std::function<std::vector<absl::string_view>(int output)> labels;
  // See ChargeClasses; empty: nothing is charged.
  std::function<absl::Status(int64_t bytes)> charge;
  const TimesOfRequest* times = nullptr;  // not null: become parameters, with encoding's own time
  bool says_final = false;                // that no further answer will come
  bool in_stream = false;                 // a ModelStreamInferResponse holds the answer
};

// A larger output's bytes become a slice of the message that owns the engine's buffer: they are not
// copied, and return to `pool` when they have been written.
//   kInvalidArgument    an output that cannot be told as classes
//   kResourceExhausted  memory for classes
//   what `form.charge` returned
absl::Status EncodeInferResponse(const AnsweredModel& model, const ModelSignature& signature,
                                 std::vector<OutputTensor> outputs, const AnswerForm& form,
                                 AnswerPool* pool, grpc::ByteBuffer* response);

// The ModelStreamInferResponse of a request that failed; `id` may be empty.
grpc::ByteBuffer EncodeStreamError(const std::string& id, const absl::Status& status);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_RESPONSE_ENCODER_H_
