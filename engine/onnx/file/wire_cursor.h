// SPDX-License-Identifier: Apache-2.0
//
// Walks the fields of one protobuf message without building objects: says where each field's bytes
// are. Reads through a small window, so that large fields are passed over without being read.
// Source: protobuf's encoding guide (wire types 0, 1, 2, 5; groups, which ONNX does not use, are
// refused). Thread-compatible.
#ifndef ENGINE_ONNX_FILE_WIRE_CURSOR_H_
#define ENGINE_ONNX_FILE_WIRE_CURSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/onnx/file/byte_source.h"

namespace tilewire::reader {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

struct WireField {
  int number = 0;
  WireType type = WireType::kVarint;
  uint64_t varint = 0;  // kVarint's value
  int64_t begin = 0;    // where the tag starts
  int64_t offset = 0;   // of the payload
  int64_t length = 0;   // of the payload
};

// The part of a source that was read last. The source must outlive it.
class ByteWindow {
 public:
  explicit ByteWindow(const ByteSource* source) : source_(source) {}
  const ByteSource& source() const { return *source_; }
  // At least `count` bytes at `offset`; valid until the next call. `count` is at most kBytes.
  absl::StatusOr<const uint8_t*> Peek(int64_t offset, int64_t count);

 private:
  static constexpr int64_t kBytes = 16384;
  const ByteSource* source_;
  std::vector<uint8_t> bytes_;
  int64_t begin_ = 0;
};

class WireCursor {
 public:
  // The message in [begin, end) of the window's source.
  WireCursor(ByteWindow* window, int64_t begin, int64_t end)
      : window_(window), at_(begin), end_(end) {}

  bool done() const { return at_ >= end_; }
  // The next field; the cursor moves past its payload.
  //   kInvalidArgument  truncated, a length beyond the message, a malformed tag
  absl::StatusOr<WireField> Next();
  // A bare varint, as in a packed field.
  absl::StatusOr<uint64_t> NextVarint();

 private:
  ByteWindow* window_;
  int64_t at_;
  int64_t end_;
};

// The payload as a string. kInvalidArgument: not length-delimited, or longer than `limit`.
absl::StatusOr<std::string> ReadString(ByteWindow* window, const WireField& field, int64_t limit);

// Appends the values of a repeated integer field: one varint, or a packed run of them.
absl::Status AppendVarints(ByteWindow* window, const WireField& field,
                           std::vector<int64_t>* values);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_WIRE_CURSOR_H_
