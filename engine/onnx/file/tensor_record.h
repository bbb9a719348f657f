// SPDX-License-Identifier: Apache-2.0
//
// The record of a tensor in a file: its small fields, and where its contents lie. Source: ONNX,
// TensorProto. Thread-compatible.
#ifndef ENGINE_ONNX_FILE_TENSOR_RECORD_H_
#define ENGINE_ONNX_FILE_TENSOR_RECORD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/file/stored_type.h"
#include "engine/onnx/file/wire_cursor.h"

namespace tilewire::reader {

// `count` elements of `size` bytes, the first at `offset`, each `stride` bytes after the one
// before.
struct ElementRun {
  int64_t offset = 0, count = 0, size = 0, stride = 0;
};

struct TensorRecord {
  std::string name;
  std::vector<int64_t> dims;
  int type = 0;
  bool has_raw = false;
  ElementRun raw;                     // of bytes
  std::vector<ElementRun> fixed;      // float_data or double_data
  std::vector<int64_t> ints;          // int32_data, int64_data or uint64_data
  std::vector<WireField> int_fields;  // where these are
  bool external = false;
  std::map<std::string, std::string> external_entries;
};

// The TensorProto in [begin, end) of the window's source. kInvalidArgument: malformed.
absl::StatusOr<TensorRecord> ReadTensorRecord(ByteWindow* window, int64_t begin, int64_t end);

// The number of elements that the dims ask for.
//   kInvalidArgument  negative or overflowing dims, too many of them
absl::StatusOr<int64_t> CheckedCount(const TensorRecord& record);

// ONNX's types whose typed contents are floating-point; those of fewer bits are bits in int32_data.
bool IsFloatType(int type);

// kInvalidArgument: the contents are not given once, in the field that belongs to the type, or do
// not fit the dims exactly.
absl::Status CheckContents(const TensorRecord& record, int64_t count, const StoredType& type);

// An external tensor is raw data in another file, `source`: the record's `raw` becomes the place
// there. kInvalidArgument: it is not in that file, or has contents besides.
absl::Status LocateExternal(int64_t expected_bytes, const ByteSource& source, TensorRecord* record);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_TENSOR_RECORD_H_
