// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/wire_cursor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

constexpr int kLongestVarint = 10;

absl::Status Malformed(int64_t at, absl::string_view what) {
  return InvalidArgument("not a model: ", what, " at byte ", at);
}

}  // namespace

absl::StatusOr<const uint8_t*> ByteWindow::Peek(int64_t offset, int64_t count) {
  const int64_t end = begin_ + static_cast<int64_t>(bytes_.size());
  if (offset < begin_ || offset + count > end) {
    const int64_t wanted = std::min(kBytes, source_->size() - offset);
    if (wanted < count) return Malformed(offset, "truncated message");
    bytes_.resize(wanted);
    begin_ = offset;
    ABSL_RETURN_IF_ERROR(source_->Read(offset, wanted, bytes_.data()));
  }
  return bytes_.data() + (offset - begin_);
}

absl::StatusOr<uint64_t> WireCursor::NextVarint() {
  const int64_t available = std::min<int64_t>(kLongestVarint, end_ - at_);
  ABSL_ASSIGN_OR_RETURN(const uint8_t* bytes, window_->Peek(at_, available));
  uint64_t value = 0;
  for (int64_t i = 0; i < available; ++i) {
    value |= uint64_t{bytes[i] & 0x7Fu} << (7 * i);
    if (bytes[i] < 0x80) {
      at_ += i + 1;
      return value;
    }
  }
  return Malformed(at_, "malformed or truncated number");
}

absl::StatusOr<WireField> WireCursor::Next() {
  WireField field;
  field.begin = at_;
  ABSL_ASSIGN_OR_RETURN(const uint64_t tag, NextVarint());
  if (tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF)
    return Malformed(field.begin, "malformed field number");
  field.number = static_cast<int>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  switch (field.type) {
    case WireType::kVarint: {
      field.offset = at_;
      ABSL_ASSIGN_OR_RETURN(field.varint, NextVarint());
      field.length = at_ - field.offset;
      return field;
    }
    case WireType::kFixed64:
      field.length = 8;
      break;
    case WireType::kFixed32:
      field.length = 4;
      break;
    case WireType::kLengthDelimited: {
      ABSL_ASSIGN_OR_RETURN(const uint64_t length, NextVarint());
      if (length > static_cast<uint64_t>(end_ - at_))
        return Malformed(field.begin, "length beyond the message");
      field.length = static_cast<int64_t>(length);
      break;
    }
    default:
      return Malformed(field.begin, "unknown wire type");
  }
  if (field.length > end_ - at_) return Malformed(field.begin, "truncated field");
  field.offset = at_;
  at_ += field.length;
  return field;
}

absl::StatusOr<std::string> ReadString(ByteWindow* window, const WireField& field, int64_t limit) {
  if (field.type != WireType::kLengthDelimited || field.length > limit) {
    return Malformed(field.begin,
                     absl::StrCat("field ", field.number, " of the wrong kind or size"));
  }
  std::string text(field.length, '\0');
  ABSL_RETURN_IF_ERROR(window->source().Read(field.offset, field.length, text.data()));
  return text;
}

absl::Status AppendVarints(ByteWindow* window, const WireField& field,
                           std::vector<int64_t>* values) {
  if (field.type == WireType::kVarint) {
    values->push_back(static_cast<int64_t>(field.varint));
    return absl::OkStatus();
  }
  if (field.type != WireType::kLengthDelimited)
    return Malformed(field.begin, "integers of the wrong kind");
  WireCursor cursor(window, field.offset, field.offset + field.length);
  while (!cursor.done()) {
    ABSL_ASSIGN_OR_RETURN(const uint64_t value, cursor.NextVarint());
    values->push_back(static_cast<int64_t>(value));
  }
  return absl::OkStatus();
}

}  // namespace tilewire::reader
