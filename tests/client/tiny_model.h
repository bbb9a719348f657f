// SPDX-License-Identifier: Apache-2.0
//
// The model `tiny` that doubles of a server serve: x FP32 [N,4] -> y FP32 [N,4].
#ifndef TESTS_CLIENT_TINY_MODEL_H_
#define TESTS_CLIENT_TINY_MODEL_H_

#include <cstdint>
#include <string>

#include "protos/open_inference.pb.h"

namespace tilewire::client {

// `batch`: the only one that is taken; -1: any.
inline inference::ModelMetadataResponse TinyMetadata(int64_t batch) {
  inference::ModelMetadataResponse response;
  response.set_name("tiny");
  response.add_versions("1");
  response.set_platform("double");
  for (auto* tensor : {response.add_inputs(), response.add_outputs()}) {
    tensor->set_name(tensor == &response.inputs(0) ? "x" : "y");
    tensor->set_datatype("FP32");
    tensor->add_shape(batch);
    tensor->add_shape(4);
  }
  return response;
}

// To a request of one row; all of its bytes are `byte`.
inline inference::ModelInferResponse TinyAnswer(char byte) {
  inference::ModelInferResponse response;
  response.set_model_name("tiny");
  auto* output = response.add_outputs();
  output->set_name("y");
  output->set_datatype("FP32");
  output->add_shape(1);
  output->add_shape(4);
  response.add_raw_output_contents(std::string(16, byte));
  return response;
}

}  // namespace tilewire::client

#endif  // TESTS_CLIENT_TINY_MODEL_H_
