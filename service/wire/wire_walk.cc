// SPDX-License-Identifier: Apache-2.0
#include "service/wire/wire_walk.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"

namespace tilewire::service {
namespace {

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

constexpr uint64_t TagOf(uint64_t field, WireType type) { return field << 3 | type; }

// Numbers of ModelInferRequest, and of ExecuteRequest and its Tensor.
constexpr uint64_t kRawInputContents = TagOf(7, kLengthDelimited);
constexpr uint64_t kInputs = TagOf(3, kLengthDelimited);
constexpr uint64_t kContent = TagOf(3, kLengthDelimited);
// Gathered without asking: an ordinary request has nothing larger.
constexpr uint64_t kSmallField = 4096;
constexpr uint64_t kHighestField = 7;

// Reads forward over slices as if they were one string.
class Cursor {
 public:
  // `message` names what is read, in errors.
  Cursor(absl::Span<const grpc::Slice> slices, const char* message)
      : slices_(slices), message_(message) {
    for (const grpc::Slice& slice : slices) left_ += slice.size();
  }

  uint64_t left() const { return left_; }

  absl::Status Malformed(absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the request is not a valid ", message_, ": ", why));
  }

  // Appends the bytes that it consumed to `copy`.
  absl::StatusOr<uint64_t> Varint(std::string* copy) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left_ == 0) return Malformed("it ends inside a number");
      const absl::string_view byte = Next(1);
      copy->append(byte.data(), 1);
      value |= static_cast<uint64_t>(byte[0] & 0x7F) << shift;
      if ((byte[0] & 0x80) == 0) return value;
    }
    return Malformed("a number of more than 10 bytes");
  }

  // A tag or a length, which protobuf takes in up to five bytes.
  absl::StatusOr<uint64_t> ShortVarint(std::string* copy) {
    const size_t before = copy->size();
    ABSL_ASSIGN_OR_RETURN(const uint64_t value, Varint(copy));
    if (copy->size() - before <= 5 && value <= std::numeric_limits<uint32_t>::max()) return value;
    return Malformed("a tag or a length of more than 32 bits");
  }

  // Calls `take` with consecutive pieces of the next `size` bytes.
  template <typename Take>
  absl::Status Bytes(uint64_t size, Take take) {
    ABSL_RETURN_IF_ERROR(CheckLeft(size));
    while (size > 0) {
      const absl::string_view piece = Next(size);
      take(piece);
      size -= piece.size();
    }
    return absl::OkStatus();
  }

  // Reads the next `size` bytes as if nothing came after them, until Widen() is called with what
  // this returns.
  absl::StatusOr<uint64_t> Narrow(uint64_t size) {
    ABSL_RETURN_IF_ERROR(CheckLeft(size));
    const uint64_t rest = left_ - size;
    left_ = size;
    return rest;
  }
  void Widen(uint64_t rest) { left_ += rest; }

  absl::Status CheckLeft(uint64_t size) const {
    if (size <= left_) return absl::OkStatus();
    return Malformed(absl::StrCat("a field of ", size, " bytes where ", left_, " are left"));
  }

 private:
  // At most `size` bytes, at least one: `left_` is not 0.
  absl::string_view Next(uint64_t size) {
    while (offset_ == slices_[index_].size()) {
      ++index_;
      offset_ = 0;
    }
    const grpc::Slice& slice = slices_[index_];
    const uint64_t taken = std::min<uint64_t>(size, slice.size() - offset_);
    const absl::string_view piece(reinterpret_cast<const char*>(slice.begin()) + offset_, taken);
    offset_ += taken;
    left_ -= taken;
    return piece;
  }

  absl::Span<const grpc::Slice> slices_;
  const char* const message_;
  size_t index_ = 0;
  size_t offset_ = 0;
  uint64_t left_ = 0;
};

// Appends the field to `kept`. `tag_bytes` is the tag as it was read.
absl::Status KeepField(Cursor* cursor, uint64_t tag, std::string tag_bytes, CopyFilter copied,
                       std::string* kept) {
  uint64_t size = 0;
  switch (tag & 7) {
    case kVarint:
      *kept += tag_bytes;
      return cursor->Varint(kept).status();
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kLengthDelimited: {
      ABSL_ASSIGN_OR_RETURN(size, cursor->ShortVarint(&tag_bytes));
      ABSL_RETURN_IF_ERROR(cursor->CheckLeft(size));
      if (size <= kSmallField) break;
      ABSL_RETURN_IF_ERROR(copied(static_cast<int64_t>(size)));
      kept->reserve(kept->size() + tag_bytes.size() + size);
      break;
    }
    default:
      return cursor->Malformed(absl::StrCat("wire type ", tag & 7));
  }
  *kept += tag_bytes;
  return cursor->Bytes(
      size, [kept](absl::string_view piece) { kept->append(piece.data(), piece.size()); });
}

// Appends where the bytes of a field lie, whose tag has been read.
absl::Status TakePieces(Cursor* cursor, Pieces* pieces) {
  std::string ignored;
  ABSL_ASSIGN_OR_RETURN(const uint64_t size, cursor->ShortVarint(&ignored));
  return cursor->Bytes(size, [pieces](absl::string_view piece) { pieces->push_back(piece); });
}

// Calls `field(tag, tag_bytes)` for each field of what is left.
template <typename Field>
absl::Status WalkFields(Cursor* cursor, Field field) {
  while (cursor->left() > 0) {
    std::string tag_bytes;
    ABSL_ASSIGN_OR_RETURN(const uint64_t tag, cursor->ShortVarint(&tag_bytes));
    if (tag >> 3 == 0) return cursor->Malformed("a field with number 0");
    ABSL_RETURN_IF_ERROR(field(tag, std::move(tag_bytes)));
  }
  return absl::OkStatus();
}

class EntryCounts {
 public:
  absl::Status Add(uint64_t tag) {
    const uint64_t field = tag >> 3;
    if (field > kHighestField || ++counts_[field] <= kMaxFieldEntries) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxFieldEntries, " entries of field ", field));
  }

 private:
  std::array<int, kHighestField + 1> counts_ = {};
};

// A Tensor without its content, which becomes an entry. Of several contents the last counts, as in
// any protobuf message.
absl::Status WalkTensor(Cursor* cursor, std::string tag_bytes, CopyFilter copied,
                        WireRequest* request) {
  std::string size_bytes, kept;
  ABSL_ASSIGN_OR_RETURN(const uint64_t size, cursor->ShortVarint(&size_bytes));
  ABSL_ASSIGN_OR_RETURN(const uint64_t rest, cursor->Narrow(size));
  const size_t first = request->pieces.size();
  ABSL_RETURN_IF_ERROR(WalkFields(cursor, [&](uint64_t tag, std::string tag_bytes) {
    if (tag != kContent) return KeepField(cursor, tag, std::move(tag_bytes), copied, &kept);
    request->pieces.resize(first);
    return TakePieces(cursor, &request->pieces);
  }));
  cursor->Widen(rest);
  request->ends.push_back(request->pieces.size());
  uint8_t length[10];
  const uint8_t* end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(kept.size(), length);
  request->fields += tag_bytes;
  request->fields.append(reinterpret_cast<const char*>(length), end - length);
  request->fields += kept;
  return absl::OkStatus();
}

void Clear(WireRequest* request) {
  request->fields.clear();
  request->pieces.clear();
  request->ends.clear();
}

}  // namespace

absl::Status WalkInferRequest(absl::Span<const grpc::Slice> slices, CopyFilter copied,
                              WireRequest* request) {
  Clear(request);
  Cursor cursor(slices, "ModelInferRequest");
  EntryCounts counts;
  return WalkFields(&cursor, [&](uint64_t tag, std::string tag_bytes) -> absl::Status {
    ABSL_RETURN_IF_ERROR(counts.Add(tag));
    if (tag != kRawInputContents) {
      return KeepField(&cursor, tag, std::move(tag_bytes), copied, &request->fields);
    }
    ABSL_RETURN_IF_ERROR(TakePieces(&cursor, &request->pieces));
    request->ends.push_back(request->pieces.size());
    return absl::OkStatus();
  });
}

absl::Status WalkExecuteRequest(absl::Span<const grpc::Slice> slices, CopyFilter copied,
                                WireRequest* request) {
  Clear(request);
  Cursor cursor(slices, "ExecuteRequest");
  EntryCounts counts;
  return WalkFields(&cursor, [&](uint64_t tag, std::string tag_bytes) -> absl::Status {
    ABSL_RETURN_IF_ERROR(counts.Add(tag));
    if (tag == kInputs) return WalkTensor(&cursor, std::move(tag_bytes), copied, request);
    return KeepField(&cursor, tag, std::move(tag_bytes), copied, &request->fields);
  });
}

}  // namespace tilewire::service
