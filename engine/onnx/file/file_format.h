// SPDX-License-Identifier: Apache-2.0
//
// Files that are given in the place of an ONNX file, known by their first bytes.
#ifndef ENGINE_ONNX_FILE_FILE_FORMAT_H_
#define ENGINE_ONNX_FILE_FILE_FORMAT_H_

#include "absl/status/status.h"
#include "engine/onnx/file/byte_source.h"

namespace tilewire::reader {

// The error for a user whose file was refused with `error`: if its bytes are those of a git-LFS
// pointer or of another format, kInvalidArgument with a message that names the format and says how
// an ONNX file is made of it; else `error`.
absl::Status NamedByFormat(const absl::Status& error, const ByteSource& file);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_FILE_FORMAT_H_
