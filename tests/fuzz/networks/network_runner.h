// SPDX-License-Identifier: Apache-2.0
//
// Loads, plans and runs a model, and compares the answer with the oracle's.
#ifndef TESTS_FUZZ_NETWORKS_NETWORK_RUNNER_H_
#define TESTS_FUZZ_NETWORKS_NETWORK_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/facade/loaded_model.h"
#include "tests/fuzz/networks/network_maker.h"
#include "tests/support/oracle/operations.h"

namespace tilewire::testing {

class NetworkRunner {
 public:
  NetworkRunner();

  // Says what became of the model, for counts. Whatever is wrong is a failure of the test: a status
  // that is not a refusal, an operation that breaks its contract after a pass, another answer than
  // the oracle's, before or after the passes.
  std::string Run(const onnx::ModelProto& model, const std::vector<Made>& inputs, Random& random);

 private:
  struct Answer {
    std::string became;
    std::vector<Elements> outputs;  // none if it was refused
  };
  Answer Serve(const onnx::ModelProto& model, const std::vector<Made>& inputs,
               const std::vector<Elements>& elements, Random& random);

  std::vector<std::shared_ptr<EngineShared>> engines_;
  std::string path_;
};

}  // namespace tilewire::testing

#endif  // TESTS_FUZZ_NETWORKS_NETWORK_RUNNER_H_
