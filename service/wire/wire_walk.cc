// SPDX-License-Identifier: Apache-2.0
#include "service/wire/wire_walk.h"

#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::service {
namespace {

// Numbers of ModelInferRequest.
constexpr uint64_t kRawInputContents = 7;
constexpr uint64_t kHighestField = 7;

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

absl::Status Malformed(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the request is not a ModelInferRequest: ", why));
}

// Reads forward over slices as if they were one string.
class Cursor {
 public:
  explicit Cursor(absl::Span<const grpc::Slice> slices) : slices_(slices) {
    for (const grpc::Slice& slice : slices) left_ += slice.size();
  }

  uint64_t left() const { return left_; }

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

  // Calls `take` with consecutive pieces of the next `size` bytes.
  template <typename Take>
  absl::Status Bytes(uint64_t size, Take take) {
    if (size > left_) {
      return Malformed(absl::StrCat("a field of ", size, " bytes where ", left_, " are left"));
    }
    while (size > 0) {
      const absl::string_view piece = Next(size);
      take(piece);
      size -= piece.size();
    }
    return absl::OkStatus();
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
  size_t index_ = 0;
  size_t offset_ = 0;
  uint64_t left_ = 0;
};

absl::Status WalkField(Cursor* cursor, uint64_t tag, std::string* tag_bytes, WireRequest* request) {
  const auto keep = [request](absl::string_view piece) {
    request->fields.append(piece.data(), piece.size());
  };
  uint64_t size = 0;
  switch (tag & 7) {
    case kVarint:
      keep(*tag_bytes);
      return cursor->Varint(&request->fields).status();
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kLengthDelimited: {
      ABSL_ASSIGN_OR_RETURN(size, cursor->Varint(tag_bytes));
      if (tag >> 3 != kRawInputContents) break;
      Pieces& pieces = request->raw.emplace_back();
      return cursor->Bytes(size, [&pieces](absl::string_view piece) { pieces.push_back(piece); });
    }
    default:
      return Malformed(absl::StrCat("wire type ", tag & 7));
  }
  keep(*tag_bytes);
  return cursor->Bytes(size, keep);
}

}  // namespace

absl::StatusOr<WireRequest> WalkInferRequest(absl::Span<const grpc::Slice> slices) {
  WireRequest request;
  Cursor cursor(slices);
  std::array<int, kHighestField + 1> counts = {};
  while (cursor.left() > 0) {
    std::string tag_bytes;
    ABSL_ASSIGN_OR_RETURN(const uint64_t tag, cursor.Varint(&tag_bytes));
    const uint64_t field = tag >> 3;
    if (field == 0) return Malformed("a field with number 0");
    if (field <= kHighestField && ++counts[field] > kMaxFieldEntries) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMaxFieldEntries, " entries of field ", field));
    }
    ABSL_RETURN_IF_ERROR(WalkField(&cursor, tag, &tag_bytes, &request));
  }
  return request;
}

}  // namespace tilewire::service
