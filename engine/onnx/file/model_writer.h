// SPDX-License-Identifier: Apache-2.0
//
// Writes a model's file again, with other numbers in some of its initializers: byte for byte the
// same but for these numbers, in the types and fields in which the file has them, and for metadata
// that is added. External data goes into files beside the new one. Source: ONNX, ModelProto.
#ifndef ENGINE_ONNX_FILE_MODEL_WRITER_H_
#define ENGINE_ONNX_FILE_MODEL_WRITER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/onnx/file/byte_source.h"

namespace tilewire::reader {

// The files of a model, open since it was read.
struct ModelFiles {
  std::string path;
  std::shared_ptr<const ByteSource> model;
  std::map<std::string, std::shared_ptr<const ByteSource>> external;  // by location
};

// Elements for an initializer of the main graph, or for the tensor of a Constant node of it, which
// has the name of its output; row-major, as many as it has.
struct NewElements {
  std::string name;
  absl::Span<const float> elements;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Numbers are rounded to the nearest of the file's type; f32, f64, f16 and bf16 are written. The
// new files come to their places once all of them are written and on the disk; if that fails,
// nothing is left but what was at these places before.
//   kInvalidArgument    a name that is no such tensor or is named twice, a tensor of another type or
//                       size, `path` is one of the model's files or in the way of one, is a folder,
//                       or lies in a folder that does not exist
//   kAlreadyExists      a file for external data that would have to be replaced
//   kFailedPrecondition the model's files were written to since they were opened
//   kResourceExhausted  no space
//   kPermissionDenied   the folder takes no files from this process
absl::Status WriteModelFile(const ModelFiles& files, const std::string& path,
                            absl::Span<const NewElements> changed, const Metadata& added);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_MODEL_WRITER_H_
