// SPDX-License-Identifier: Apache-2.0
//
// Compares every answer of a load with the first answer to the same request, or with a recorded
// one: outputs bit by bit, since a server that computes the same bits every time must never differ,
// whatever runs beside it. With a tolerance, floating-point values may differ by
// tolerance * max(1, |expected|); NaN equals NaN. Thread-safe.
#ifndef CLIENT_LOAD_ANSWER_CHECK_H_
#define CLIENT_LOAD_ANSWER_CHECK_H_

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/load/golden.h"

namespace tilewire::client {

class AnswerCheck {
 public:
  // For requests of these fingerprints. Not null, `golden` holds what is expected:
  //   kNotFound  it has no answer to one of the requests
  static absl::StatusOr<std::unique_ptr<AnswerCheck>> Create(std::vector<uint64_t> fingerprints,
                                                             const GoldenAnswers* golden,
                                                             double tolerance);

  // Judges a serialized ModelInferResponse to request number `request`: empty if it is the first
  // one or is as expected, else what differs or why it cannot be read.
  std::string Differs(size_t request, const grpc::ByteBuffer& answer) ABSL_LOCKS_EXCLUDED(mutex_);

  // The expected answers of the requests that were answered.
  GoldenAnswers Expectations() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  AnswerCheck(std::vector<uint64_t> fingerprints, double tolerance, const char* source)
      : fingerprints_(std::move(fingerprints)),
        tolerance_(tolerance),
        source_(source),
        expected_(fingerprints_.size()) {}

  // The expected answer, or null if `answer` was adopted as it.
  std::shared_ptr<const std::string> Expected(size_t request, const grpc::ByteBuffer& answer)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<uint64_t> fingerprints_;
  const double tolerance_;
  const char* const source_;  // what the answers are compared with, in words
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<const std::string>> expected_ ABSL_GUARDED_BY(mutex_);  // serialized
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_ANSWER_CHECK_H_
