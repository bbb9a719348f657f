// SPDX-License-Identifier: Apache-2.0
//
// The places of a model's files where other numbers go, and what goes there. Where that has another
// length, as f16 in a field of integers may have, the lengths of the messages around it are among
// these places. Thread-compatible. Source: protobuf's encoding guide; ONNX, ModelProto.
#ifndef ENGINE_ONNX_FILE_MODEL_SPLICES_H_
#define ENGINE_ONNX_FILE_MODEL_SPLICES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/data_type.h"
#include "engine/onnx/file/model_files.h"

namespace tilewire::reader {

// A part of the new file in the place of the bytes [begin, end) of the old one: `bytes`, or numbers
// in `type`.
struct Splice {
  int64_t begin = 0, end = 0;
  std::string bytes = {};
  absl::Span<const float> numbers = {};
  DataType type = DataType::kF32;
};

// By place; they do not overlap.
struct Splices {
  std::vector<Splice> model;
  std::map<std::string, std::vector<Splice>> external;  // by location
};

// Numbers are borrowed from `changed` and `files`. Errors: kInvalidArgument of WriteModelFile(), as
// far as the contents of the files are concerned.
absl::StatusOr<Splices> FindSplices(const ModelFiles& files, absl::Span<const NewElements> changed,
                                    const Metadata& added);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_MODEL_SPLICES_H_
