// SPDX-License-Identifier: Apache-2.0
//
// Reads an ONNX file into a graph and its initializers; names are not resolved yet.
#ifndef ENGINE_ONNX_FILE_ONNX_FILE_H_
#define ENGINE_ONNX_FILE_ONNX_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/network/constant.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/problems.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::reader {

// Whether it is that of ONNX's own operators, which has two names.
inline bool IsDefaultDomain(absl::string_view domain) {
  return domain.empty() || domain == "ai.onnx";
}

// The versions that a model or a function imports, by domain; the default domain is "".
using Opsets = std::map<std::string, int64_t>;

struct OnnxFile {
  std::unique_ptr<onnx::GraphProto> graph;  // without initializers
  std::vector<network::ConstantPtr> initializers;
  std::vector<onnx::FunctionProto> functions;
  Opsets opsets;
  int64_t ir_version = 0;
  std::map<std::string, std::shared_ptr<const ByteSource>> external;  // by location
  Problems problems;  // what is not supported so far
};

// Reads a ModelProto. `model_path` locates external data; an empty path refuses external data.
// An opset or an initializer that is not supported is a problem, and reading goes on without it.
//   kInvalidArgument  not ONNX, truncated, or a tensor that tensor_reader.h refuses
absl::StatusOr<OnnxFile> ReadOnnxFile(const ByteSource& source, const std::string& model_path);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_ONNX_FILE_H_
