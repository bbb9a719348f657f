// SPDX-License-Identifier: Apache-2.0
//
// Large weights that stay in the model's file until they are packed, so that they are never in
// memory twice.
#ifndef ENGINE_ONNX_FILE_NUMBERS_IN_FILE_H_
#define ENGINE_ONNX_FILE_NUMBERS_IN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/network/constant.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/file/stored_type.h"

namespace tilewire::reader {

// Consecutive elements in a file that stays open, of f32 and types of fewer bits. They are read
// once at the start, for the sum of their bytes, with which every later read must agree, whatever
// the file's times say: a file may be overwritten with its time of modification kept. Immutable.
class NumbersInFile final : public network::StoredNumbers {
 public:
  // `name` is the tensor's, for messages. Errors: those of `source`, kResourceExhausted.
  static absl::StatusOr<std::shared_ptr<const NumbersInFile>> Create(
      std::string name, StoredType type, std::shared_ptr<const ByteSource> source, int64_t offset,
      int64_t count);

  absl::StatusOr<network::HeldFloats> Load() const override;
  absl::StatusOr<network::HeldBytes> LoadBytes() const override;
  absl::Status Check() const override;

 private:
  NumbersInFile(std::string name, StoredType type, std::shared_ptr<const ByteSource> source,
                int64_t offset, int64_t count);

  int64_t bytes() const { return type_.Bytes(count_); }
  absl::StatusOr<size_t> ReadSum() const;
  absl::Status ReadTo(std::byte* to) const;
  absl::Status Changed(absl::string_view how) const;

  const std::string name_;
  const StoredType type_;
  const std::shared_ptr<const ByteSource> source_;
  const int64_t offset_, count_;
  size_t sum_ = 0;
};

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_NUMBERS_IN_FILE_H_
