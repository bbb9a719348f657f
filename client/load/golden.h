// SPDX-License-Identifier: Apache-2.0
//
// Answers that were recorded, to compare those of another day, machine or version with. Each is
// kept under the fingerprint of its request: model, inputs with their bytes, and outputs.
//
// A file is the line "tilewire answers 1", then for each answer the fingerprint and the size (8
// bytes each, little-endian) and the serialized ModelInferResponse.
#ifndef CLIENT_LOAD_GOLDEN_H_
#define CLIENT_LOAD_GOLDEN_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tilewire::client {

using GoldenAnswers = std::map<uint64_t, std::string>;

// FNV-1a of a serialized ModelInferRequest.
uint64_t FingerprintOf(absl::string_view request);

std::string WriteGolden(const GoldenAnswers& answers);
// kInvalidArgument  not such a file, or cut short
absl::StatusOr<GoldenAnswers> ReadGolden(absl::string_view bytes);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_GOLDEN_H_
