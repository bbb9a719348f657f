// SPDX-License-Identifier: Apache-2.0
//
// Reads ONNX TensorProto messages straight from the file, without protobuf objects: small contents
// at once, large ones on demand (StoredNumbers in constant.h). Types float,
// double, float16, bfloat16, bool and the integers up to int64; raw_data, the typed fields (packed
// or not) and external data.
#ifndef ENGINE_ONNX_FILE_TENSOR_READER_H_
#define ENGINE_ONNX_FILE_TENSOR_READER_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/network/constant.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/file/sparse_tensor.h"
#include "engine/onnx/file/wire_cursor.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::reader {

// Thread-compatible.
class TensorReader {
 public:
  // `model_path` locates external data; empty refuses it.
  explicit TensorReader(std::string model_path, int64_t room_for_sparse = kMostSparseElements)
      : model_path_(std::move(model_path)), room_for_sparse_(room_for_sparse) {}

  // The TensorProto in [begin, end) of the window's source.
  //   kInvalidArgument    malformed, negative or overflowing dims, contents that do not fit the
  //                       dims, external data outside the model's folder; the message names the
  //                       tensor
  //   kUnimplemented      another element type
  //   kNotFound           an external file that does not exist
  //   kResourceExhausted  memory
  absl::StatusOr<network::ConstantPtr> Read(ByteWindow* window, int64_t begin, int64_t end);

  // The SparseTensorProto in [begin, end), made dense. Errors are those of Read(), of MakeDense()
  // (sparse_tensor.h), and kInvalidArgument: malformed.
  absl::StatusOr<network::ConstantPtr> ReadSparse(ByteWindow* window, int64_t begin, int64_t end);

  // The external files that tensors were read from, by location.
  const std::map<std::string, std::shared_ptr<const ByteSource>>& external() const {
    return external_;
  }

  // kInvalidArgument: an external file was written to since it was opened.
  absl::Status CheckUnchanged();

 private:
  absl::StatusOr<const ByteSource*> External(const std::string& location);

  std::string model_path_;
  int64_t room_for_sparse_;                                            // in elements
  std::map<std::string, std::shared_ptr<const ByteSource>> external_;  // by location
};

// A tensor that is not an initializer of the main graph, in memory. Errors are those of Read(), and
// kUnimplemented: external data.
absl::StatusOr<network::ConstantPtr> ReadTensor(const onnx::TensorProto& tensor);
absl::StatusOr<network::ConstantPtr> ReadTensor(const onnx::SparseTensorProto& tensor);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_TENSOR_READER_H_
