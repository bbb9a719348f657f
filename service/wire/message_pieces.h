// SPDX-License-Identifier: Apache-2.0
//
// A serialised message put together from small pieces, which are copied, and large ones, which are
// slices of their own. Thread-compatible.
#ifndef SERVICE_WIRE_MESSAGE_PIECES_H_
#define SERVICE_WIRE_MESSAGE_PIECES_H_

#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"

namespace tilewire::service {

class MessagePieces {
 public:
  // Room for `size` bytes, to be written before the next call.
  uint8_t* Append(size_t size) {
    pending_.resize(pending_.size() + size);
    return pending_.data() + pending_.size() - size;
  }
  void AppendMessage(const google::protobuf::MessageLite& message) {
    const size_t size = message.ByteSizeLong();
    message.SerializeWithCachedSizesToArray(Append(size));
  }
  // The tag and the length of a field of `size` bytes.
  static size_t FieldHeadBytes(uint32_t tag, uint64_t size) {
    return CodedOutputStream::VarintSize32(tag) + CodedOutputStream::VarintSize64(size);
  }
  void AppendFieldHead(uint32_t tag, uint64_t size) {
    uint8_t bytes[16];
    uint8_t* end = CodedOutputStream::WriteVarint32ToArray(tag, bytes);
    end = CodedOutputStream::WriteVarint64ToArray(size, end);
    pending_.insert(pending_.end(), bytes, end);
  }
  void AppendSlice(grpc::Slice slice) {
    Flush();
    slices_.push_back(std::move(slice));
  }

  // Makes all of it the field `tag` of another message.
  void WrapIn(uint32_t tag) {
    Flush();
    uint64_t size = 0;
    for (const grpc::Slice& slice : slices_) size += slice.size();
    AppendFieldHead(tag, size);
    slices_.insert(slices_.begin(), grpc::Slice(pending_.data(), pending_.size()));
    pending_.clear();
  }

  void MoveTo(grpc::ByteBuffer* buffer) {
    Flush();
    if (slices_.empty()) slices_.emplace_back();
    grpc::ByteBuffer whole(slices_.data(), slices_.size());
    buffer->Swap(&whole);
  }

 private:
  using CodedOutputStream = google::protobuf::io::CodedOutputStream;

  void Flush() {
    if (!pending_.empty()) slices_.emplace_back(pending_.data(), pending_.size());
    pending_.clear();
  }

  absl::InlinedVector<uint8_t, 6144> pending_;
  absl::InlinedVector<grpc::Slice, 8> slices_;
};

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_MESSAGE_PIECES_H_
