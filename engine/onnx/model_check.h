// SPDX-License-Identifier: Apache-2.0
//
// Whether a file can be served, what it takes and gives, and everything that keeps it from being
// served. Reads what OnnxModel::Open() reads, so that the verdict is that of a server.
#ifndef ENGINE_ONNX_MODEL_CHECK_H_
#define ENGINE_ONNX_MODEL_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tilewire::reader {

// An input or an output, in the file's words.
struct CheckedTensor {
  std::string name;
  std::string type;               // as servers name it, "FP32"; ONNX's name of what none serves
  bool has_shape = true;          // else `dims` says nothing
  std::vector<std::string> dims;  // a size, the name of an open dimension, or "?"
};

struct ModelCheck {
  absl::Status status;  // of OnnxModel::Open()
  // All that it lacks, one text each; none where the status is OK.
  std::vector<std::string> lacks;
  // The rest is empty where the file is not ONNX.
  int64_t opset = 0;  // of the default domain; 0: the file has none
  int64_t nodes = 0;
  int64_t weights_bytes = 0;  // of initializers; known where the status is OK
  std::vector<CheckedTensor> inputs, outputs;
  // Whether some sizes are known only once they are computed, so that what depends on them is
  // planned while a request runs (cut.h).
  bool in_stages = false;
  // Why no shape that was tried for what is open fits; OK where one did.
  absl::Status unfit;
  std::vector<std::string> leftovers;  // training_leftovers.h
};

ModelCheck CheckModel(const std::string& path);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_MODEL_CHECK_H_
