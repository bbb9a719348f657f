// SPDX-License-Identifier: Apache-2.0
#include "client/load/golden.h"

#include "absl/strings/strip.h"

namespace tilewire::client {
namespace {

constexpr absl::string_view kFirstLine = "tilewire answers 1\n";
constexpr size_t kNumberBytes = 8;

void AppendNumber(uint64_t number, std::string* bytes) {
  for (size_t i = 0; i < kNumberBytes; ++i)
    bytes->push_back(static_cast<char>(number >> (8 * i) & 0xFF));
}

bool TakeNumber(absl::string_view* bytes, uint64_t* number) {
  if (bytes->size() < kNumberBytes) return false;
  *number = 0;
  for (size_t i = 0; i < kNumberBytes; ++i)
    *number |= uint64_t{static_cast<uint8_t>((*bytes)[i])} << (8 * i);
  bytes->remove_prefix(kNumberBytes);
  return true;
}

}  // namespace

uint64_t FingerprintOf(absl::string_view request) {
  uint64_t hash = 14695981039346656037u;
  for (const char byte : request) hash = (hash ^ static_cast<uint8_t>(byte)) * 1099511628211u;
  return hash;
}

std::string WriteGolden(const GoldenAnswers& answers) {
  std::string bytes(kFirstLine);
  for (const auto& [fingerprint, answer] : answers) {
    AppendNumber(fingerprint, &bytes);
    AppendNumber(answer.size(), &bytes);
    bytes += answer;
  }
  return bytes;
}

absl::StatusOr<GoldenAnswers> ReadGolden(absl::string_view bytes) {
  if (!absl::ConsumePrefix(&bytes, kFirstLine))
    return absl::InvalidArgumentError("not a file of recorded answers");
  GoldenAnswers answers;
  while (!bytes.empty()) {
    uint64_t fingerprint = 0, size = 0;
    if (!TakeNumber(&bytes, &fingerprint) || !TakeNumber(&bytes, &size) || size > bytes.size())
      return absl::InvalidArgumentError("the file of recorded answers is cut short");
    answers[fingerprint] = std::string(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return answers;
}

}  // namespace tilewire::client
