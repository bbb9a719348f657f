// SPDX-License-Identifier: Apache-2.0
//
// Compares every answer of a load with the first answer to the same input, outputs bit by bit: a
// server that computes the same bits every time must never differ, whatever runs beside it.
// Thread-safe.
#ifndef CLIENT_LOAD_ANSWER_CHECK_H_
#define CLIENT_LOAD_ANSWER_CHECK_H_

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tilewire::client {

class AnswerCheck {
 public:
  explicit AnswerCheck(size_t inputs) : expected_(inputs) {}

  // Of a serialized ModelInferResponse to input number `input`: empty if it is the first one or
  // equals it, else what differs or why it cannot be read.
  std::string Differs(size_t input, const grpc::ByteBuffer& answer) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The first answer to the input; null if `answer` became that.
  std::shared_ptr<const std::string> Expected(size_t input, const grpc::ByteBuffer& answer)
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::vector<std::shared_ptr<const std::string>> expected_ ABSL_GUARDED_BY(mutex_);  // serialized
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_ANSWER_CHECK_H_
