// SPDX-License-Identifier: Apache-2.0
#include "client/load/answer_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "protos/open_inference.pb.h"

namespace tilewire::client {
namespace {

// Whether the bytes are the same; the answer's are not copied.
bool Equal(absl::string_view expected, const grpc::ByteBuffer& answer) {
  if (answer.Length() != expected.size()) return false;
  std::vector<grpc::Slice> slices;
  if (!answer.Dump(&slices).ok()) return false;
  for (const grpc::Slice& slice : slices) {
    if (std::memcmp(expected.data(), slice.begin(), slice.size()) != 0) return false;
    expected.remove_prefix(slice.size());
  }
  return true;
}

std::string Flat(const grpc::ByteBuffer& answer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!answer.Dump(&slices).ok()) return bytes;
  bytes.reserve(answer.Length());
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

template <typename Float>
bool WithinTolerance(const std::string& expected, const std::string& answer, double tolerance) {
  if (expected.size() != answer.size() || answer.size() % sizeof(Float) != 0) return false;
  for (size_t at = 0; at < answer.size(); at += sizeof(Float)) {
    Float a, b;
    std::memcpy(&a, expected.data() + at, sizeof(Float));
    std::memcpy(&b, answer.data() + at, sizeof(Float));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double most = tolerance * std::max(1.0, std::fabs(static_cast<double>(a)));
    // The comparison is false for NaN and for infinities that differ.
    if (!(std::fabs(static_cast<double>(b) - a) <= most) || !std::isfinite(b)) return false;
  }
  return true;
}

bool SameValues(const std::string& datatype, const std::string& expected, const std::string& answer,
                double tolerance) {
  if (expected == answer) return true;
  if (tolerance == 0) return false;
  if (datatype == "FP32") return WithinTolerance<float>(expected, answer, tolerance);
  return datatype == "FP64" && WithinTolerance<double>(expected, answer, tolerance);
}

// Compares two messages whose bytes are not the same: an id or a parameter may differ, outputs may
// not.
std::string Difference(const std::string& expected, const std::string& answer, double tolerance,
                       absl::string_view source) {
  inference::ModelInferResponse first, other;
  if (!first.ParseFromString(expected) || !other.ParseFromString(answer))
    return "an answer is not a ModelInferResponse";
  if (first.outputs_size() != other.outputs_size()) return "another number of outputs";
  for (int i = 0; i < first.outputs_size(); ++i) {
    const auto &a = first.outputs(i), &b = other.outputs(i);
    const bool same =
        i < first.raw_output_contents_size() && i < other.raw_output_contents_size() &&
        a.name() == b.name() && a.datatype() == b.datatype() &&
        std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end()) &&
        SameValues(a.datatype(), first.raw_output_contents(i), other.raw_output_contents(i),
                   tolerance);
    if (!same) return absl::StrCat("output '", b.name(), "' differs from the ", source);
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<AnswerCheck>> AnswerCheck::Create(std::vector<uint64_t> fingerprints,
                                                                 const GoldenAnswers* golden,
                                                                 double tolerance) {
  std::unique_ptr<AnswerCheck> check(
      new AnswerCheck(std::move(fingerprints), tolerance,
                      golden == nullptr ? "first answer to the same input" : "recorded answer"));
  if (golden == nullptr) return check;
  absl::MutexLock lock(&check->mutex_);
  for (size_t i = 0; i < check->fingerprints_.size(); ++i) {
    const auto answer = golden->find(check->fingerprints_[i]);
    if (answer == golden->end()) {
      return absl::NotFoundError(
          absl::StrCat("no answer to request ", i,
                       " was recorded: record with the same models, inputs and layouts"));
    }
    check->expected_[i] = std::make_shared<const std::string>(answer->second);
  }
  return check;
}

std::shared_ptr<const std::string> AnswerCheck::Expected(size_t request,
                                                         const grpc::ByteBuffer& answer) {
  absl::MutexLock lock(&mutex_);
  if (expected_[request] != nullptr) return expected_[request];
  expected_[request] = std::make_shared<const std::string>(Flat(answer));
  return nullptr;
}

std::string AnswerCheck::Differs(size_t request, const grpc::ByteBuffer& answer) {
  const std::shared_ptr<const std::string> expected = Expected(request, answer);
  if (expected == nullptr || Equal(*expected, answer)) return "";
  return Difference(*expected, Flat(answer), tolerance_, source_);
}

GoldenAnswers AnswerCheck::Expectations() const {
  absl::MutexLock lock(&mutex_);
  GoldenAnswers answers;
  for (size_t i = 0; i < expected_.size(); ++i) {
    if (expected_[i] != nullptr) answers[fingerprints_[i]] = *expected_[i];
  }
  return answers;
}

}  // namespace tilewire::client
