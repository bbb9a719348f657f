// SPDX-License-Identifier: Apache-2.0
#include "service/wire/message_limits.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"

namespace tilewire::service {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// A parsed integer has up to 8 bytes, an entry with its bookkeeping some hundreds.
constexpr int64_t kPackedBytesPerEntry = 64;

bool IsPackedVarint(const FieldDescriptor* field) {
  return field != nullptr && field->is_packable() &&
         WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(
             field->type())) == WireFormatLite::WIRETYPE_VARINT;
}

class Counter {
 public:
  explicit Counter(const Descriptor& type) : root_(type) {}

  absl::Status Count(CodedInputStream* in) { return CountMessage(root_, in); }

 private:
  absl::Status Malformed() const {
    return absl::InvalidArgumentError(absl::StrCat("the request is not a valid ", root_.name()));
  }

  absl::Status Add(int64_t entries) {
    entries_ += entries;
    if (entries_ <= kMaxEntries) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the request has more than ", kMaxEntries, " entries"));
  }

  absl::Status CountMessage(const Descriptor& type, CodedInputStream* in) {
    while (const uint32_t tag = in->ReadTag()) {
      const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        ABSL_RETURN_IF_ERROR(CountDelimited(field, in));
        continue;
      }
      if (!WireFormatLite::SkipField(in, tag)) return Malformed();
      if (field == nullptr) ABSL_RETURN_IF_ERROR(Add(1));
    }
    return in->ConsumedEntireMessage() ? absl::OkStatus() : Malformed();
  }

  absl::Status CountDelimited(const FieldDescriptor* field, CodedInputStream* in) {
    uint32_t size = 0;
    if (!in->ReadVarint32(&size)) return Malformed();
    ABSL_RETURN_IF_ERROR(Add(1));
    if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE) {
      const CodedInputStream::Limit outer = in->PushLimit(size);
      if (in->BytesUntilLimit() != static_cast<int>(size)) return Malformed();
      ABSL_RETURN_IF_ERROR(CountMessage(*field->message_type(), in));
      in->PopLimit(outer);
      return absl::OkStatus();
    }
    if (!in->Skip(size)) return Malformed();
    return Add(IsPackedVarint(field) ? size / kPackedBytesPerEntry : 0);
  }

  const Descriptor& root_;
  int64_t entries_ = 0;
};

}  // namespace

absl::Status CheckEntries(const Descriptor& type,
                          google::protobuf::io::ZeroCopyInputStream* bytes) {
  CodedInputStream in(bytes);
  return Counter(type).Count(&in);
}

absl::Status ParseLimited(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  if (!bytes.Valid()) return absl::OkStatus();  // an empty message
  // A reader goes through the buffer once and may not change it; it wants a pointer to non-const.
  grpc::ByteBuffer buffer = bytes;
  grpc::ProtoBufferReader counted(&buffer);
  if (!counted.status().ok()) {
    return absl::InvalidArgumentError("the request cannot be decompressed");
  }
  ABSL_RETURN_IF_ERROR(CheckEntries(*message->GetDescriptor(), &counted));
  grpc::ProtoBufferReader parsed(&buffer);
  if (!message->ParseFromZeroCopyStream(&parsed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request is not a valid ", message->GetDescriptor()->name()));
  }
  return absl::OkStatus();
}

bool FitMessage(const std::vector<TensorSpec>& tensors, int64_t max_message_bytes) {
  std::optional<int64_t> all = 0;
  for (const TensorSpec& tensor : tensors) {
    std::optional<int64_t> bytes = SizeOf(tensor.type);
    for (int64_t dim : tensor.dims) {
      if (bytes) bytes = CheckedMul(*bytes, std::max<int64_t>(dim, 1));
    }
    if (all) all = bytes ? CheckedAdd(*all, *bytes) : std::nullopt;
  }
  return all && *all <= max_message_bytes;
}

}  // namespace tilewire::service
