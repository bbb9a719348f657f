// SPDX-License-Identifier: Apache-2.0
//
// Requests to the model `digits` that are wrong in one way, by kind: a row says what is wrong and
// which code answers it, and each draw from a row is another variation. Pure functions of the
// random numbers.
#ifndef TESTS_INTEGRATION_HOSTILE_REQUESTS_H_
#define TESTS_INTEGRATION_HOSTILE_REQUESTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"
#include "protos/open_inference.pb.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {

inline constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
inline constexpr auto kNotFound = grpc::StatusCode::NOT_FOUND;
inline constexpr auto kOk = grpc::StatusCode::OK;

constexpr int kPictureFloats = 3 * 24 * 20;

// `batch` pictures, and every output; features in the layout of the input.
inference::ModelInferRequest DigitsRequest(int batch, absl::string_view layout);

// A request with pictures, layout and requested outputs drawn from `random`.
inference::ModelInferRequest RandomRequest(Random* random);

struct HostileKind {
  const char* why;
  grpc::StatusCode code;
  // The bytes of one such request.
  std::string (*make)(Random* random);
};

std::vector<HostileKind> HostileTensors();     // shapes, types and contents of inputs
std::vector<HostileKind> HostileNames();       // models, versions, ids, inputs, outputs, parameters
std::vector<HostileKind> HostileWireFormat();  // bytes that are no such message

inline constexpr char kInference[] = "inference.GRPCInferenceService";

// A request to another method.
struct HostileMethod {
  const char *why, *method;
  grpc::StatusCode code;
  std::string (*make)(Random* random);
  const char* service = kInference;
};

std::vector<HostileMethod> HostileMethods();

}  // namespace tilewire::testing

#endif  // TESTS_INTEGRATION_HOSTILE_REQUESTS_H_
