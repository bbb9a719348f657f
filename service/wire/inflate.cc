// SPDX-License-Identifier: Apache-2.0
#include "service/wire/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "grpc/byte_buffer.h"
#include "grpc/slice.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"

namespace tilewire::service {
namespace {

// gRPC's C++ interface tells how a buffer is compressed to its readers only.
class MarkReader final : public grpc::ProtoBufferReader {
 public:
  using ProtoBufferReader::ProtoBufferReader;
  grpc_compression_algorithm Algorithm() {
    return status().ok() ? reader()->buffer_in->data.raw.compression : GRPC_COMPRESS_NONE;
  }
};

// As gRPC has marked it.
grpc_compression_algorithm AlgorithmOf(const grpc::ByteBuffer& message) {
  if (!message.Valid()) return GRPC_COMPRESS_NONE;
  // A reader changes nothing; it wants a pointer to non-const.
  return MarkReader(const_cast<grpc::ByteBuffer*>(&message)).Algorithm();
}

absl::Status Malformed() {
  return absl::InvalidArgumentError("the request cannot be decompressed");
}

class Inflater {
 public:
  explicit Inflater(grpc_compression_algorithm algorithm) {
    constexpr int kGzip = 16;  // added to the bits of the window
    const int bits = MAX_WBITS + (algorithm == GRPC_COMPRESS_GZIP ? kGzip : 0);
    ready_ = inflateInit2(&stream_, bits) == Z_OK;
  }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;

  bool ready() const { return ready_; }
  bool at_end() const { return at_end_; }
  bool has_input() const { return stream_.avail_in > 0; }
  bool has_room() const { return stream_.avail_out > 0; }

  void SetInput(const grpc::Slice& slice) {
    stream_.next_in = const_cast<Bytef*>(slice.begin());  // zlib reads it only
    stream_.avail_in = static_cast<uInt>(slice.size());
  }
  void SetRoom(uint8_t* bytes, int64_t size) {
    stream_.next_out = bytes;
    stream_.avail_out = static_cast<uInt>(size);
  }
  int64_t room() const { return stream_.avail_out; }

  // Fills the room as far as the input goes. False if the input is no such stream.
  bool Step() {
    const int result = inflate(&stream_, Z_NO_FLUSH);
    at_end_ = result == Z_STREAM_END;
    return result == Z_OK || result == Z_BUF_ERROR || at_end_;
  }

 private:
  z_stream stream_ = {};
  bool ready_ = false, at_end_ = false;
};

// The inflated bytes, as far as there are any.
class InflatedPieces {
 public:
  InflatedPieces(int64_t most_bytes, absl::FunctionRef<absl::Status(int64_t)> charge)
      : most_bytes_(most_bytes), charge_(charge) {}

  // Another piece of room; the last one is full.
  absl::Status Add(Inflater* inflater) {
    if (Bytes(*inflater) > most_bytes_) return TooLarge();
    ABSL_RETURN_IF_ERROR(charge_(kInflatedPiece));
    grpc_slice slice = grpc_slice_malloc(kInflatedPiece);
    inflater->SetRoom(GRPC_SLICE_START_PTR(slice), kInflatedPiece);
    pieces_.emplace_back(slice, grpc::Slice::STEAL_REF);
    return absl::OkStatus();
  }

  absl::Status MoveTo(const Inflater& inflater, grpc::ByteBuffer* message) {
    if (Bytes(inflater) > most_bytes_) return TooLarge();
    const auto last = static_cast<size_t>(kInflatedPiece - inflater.room());
    pieces_.back() = pieces_.back().sub(0, last);
    grpc::ByteBuffer whole(pieces_.data(), pieces_.size());
    message->Swap(&whole);
    return absl::OkStatus();
  }

 private:
  int64_t Bytes(const Inflater& inflater) const {
    return static_cast<int64_t>(pieces_.size()) * kInflatedPiece - inflater.room();
  }
  absl::Status TooLarge() const {
    return absl::ResourceExhaustedError(absl::StrCat("the request inflates to more than the ",
                                                     most_bytes_, " bytes that it may have"));
  }

  const int64_t most_bytes_;
  const absl::FunctionRef<absl::Status(int64_t)> charge_;
  std::vector<grpc::Slice> pieces_;
};

}  // namespace

absl::Status InflateSlices(grpc_compression_algorithm algorithm,
                           absl::Span<const grpc::Slice> slices, int64_t most_bytes,
                           absl::FunctionRef<absl::Status(int64_t bytes)> charge,
                           grpc::ByteBuffer* inflated) {
  Inflater inflater(algorithm);
  if (!inflater.ready()) return Malformed();
  InflatedPieces pieces(most_bytes, charge);
  ABSL_RETURN_IF_ERROR(pieces.Add(&inflater));
  for (const grpc::Slice& slice : slices) {
    if (slice.size() == 0) continue;
    if (inflater.at_end()) return Malformed();
    inflater.SetInput(slice);
    while (!inflater.at_end() && (inflater.has_input() || !inflater.has_room())) {
      if (!inflater.has_room()) ABSL_RETURN_IF_ERROR(pieces.Add(&inflater));
      if (!inflater.Step()) return Malformed();
    }
    if (inflater.has_input()) return Malformed();
  }
  if (!inflater.at_end()) return Malformed();
  return pieces.MoveTo(inflater, inflated);
}

absl::Status Inflate(int64_t most_bytes, absl::FunctionRef<absl::Status(int64_t bytes)> charge,
                     grpc::ByteBuffer* message) {
  const grpc_compression_algorithm algorithm = AlgorithmOf(*message);
  if (algorithm == GRPC_COMPRESS_NONE) return absl::OkStatus();
  std::vector<grpc::Slice> slices;
  if (!message->Dump(&slices).ok()) return Malformed();
  return InflateSlices(algorithm, slices, most_bytes, charge, message);
}

}  // namespace tilewire::service
