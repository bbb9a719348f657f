// SPDX-License-Identifier: Apache-2.0
//
// The files that a model was read from, and what a new file is to have besides.
#ifndef ENGINE_ONNX_FILE_MODEL_FILES_H_
#define ENGINE_ONNX_FILE_MODEL_FILES_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/network/constant.h"
#include "engine/onnx/file/byte_source.h"

namespace tilewire::reader {

// The files of a model, open since it was read.
struct ModelFiles {
  std::string path;
  std::shared_ptr<const ByteSource> model;
  std::map<std::string, std::shared_ptr<const ByteSource>> external;  // by location
  std::vector<std::string> training_leftovers;                        // training_leftovers.h
  // Initializers for which the file has Identity nodes (merged_initializers.h).
  std::vector<network::ConstantPtr> taken_apart;
};

// Elements for an initializer of the main graph, one that was taken apart among them, or for the
// tensor of a Constant node of it, which has the name of its output; row-major, as many as it has.
struct NewElements {
  std::string name;
  absl::Span<const float> elements;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_MODEL_FILES_H_
