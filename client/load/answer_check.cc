// SPDX-License-Identifier: Apache-2.0
#include "client/load/answer_check.h"

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

// Of two messages whose bytes are not the same: an id or a parameter may differ, outputs may not.
std::string Difference(const std::string& expected, const std::string& answer) {
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
        first.raw_output_contents(i) == other.raw_output_contents(i);
    if (!same) {
      return absl::StrCat("output '", b.name(),
                          "' differs from the first answer to the same input");
    }
  }
  return "";
}

}  // namespace

std::shared_ptr<const std::string> AnswerCheck::Expected(size_t input,
                                                         const grpc::ByteBuffer& answer) {
  absl::MutexLock lock(&mutex_);
  if (expected_[input] != nullptr) return expected_[input];
  expected_[input] = std::make_shared<const std::string>(Flat(answer));
  return nullptr;
}

std::string AnswerCheck::Differs(size_t input, const grpc::ByteBuffer& answer) {
  const std::shared_ptr<const std::string> expected = Expected(input, answer);
  if (expected == nullptr || Equal(*expected, answer)) return "";
  return Difference(*expected, Flat(answer));
}

}  // namespace tilewire::client
