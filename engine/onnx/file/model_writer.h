// SPDX-License-Identifier: Apache-2.0
//
// Writes a model's file again, with other numbers in some of its initializers: byte for byte the
// same but for these numbers, in the types and fields in which the file has them, for initializers
// in the place of nodes that were taken apart (ModelFiles), and for metadata that is added.
// External data goes into files beside the new one. Source: ONNX, ModelProto.
#ifndef ENGINE_ONNX_FILE_MODEL_WRITER_H_
#define ENGINE_ONNX_FILE_MODEL_WRITER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/onnx/file/model_files.h"

namespace tilewire::reader {

// Numbers are rounded to the nearest of the file's type; f32, f64, f16 and bf16 are written. The
// new files come to their places once all of them are written and on the disk; if that fails,
// nothing is left but what was at these places before.
//   kInvalidArgument    a name that no such tensor has or that is given twice, a tensor of another
//                       type or size, `path` is one of the model's files or in the way of one, is
//                       a folder, or lies in a folder that does not exist
//   kAlreadyExists      a file for external data that would have to be replaced
//   kFailedPrecondition the model's files were written to since they were opened, or a mount point
//                       is where a file is to be
//   kResourceExhausted  no space
//   kPermissionDenied   the folder takes no files from this process
absl::Status WriteModelFile(const ModelFiles& files, const std::string& path,
                            absl::Span<const NewElements> changed, const Metadata& added);

// Whether WriteModelFile() could begin: the errors of places, as they are now. Writes nothing.
absl::Status CheckPlaces(const ModelFiles& files, const std::string& path);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_MODEL_WRITER_H_
