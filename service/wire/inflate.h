// SPDX-License-Identifier: Apache-2.0
//
// Messages that gRPC received compressed and was told not to inflate, inflated within bounds: in
// pieces of kInflatedPiece, each of which is charged before it is filled, and never beyond a size.
// A message that inflates to a thousand times its bytes then costs what it may cost, no more.
// Thread-compatible.
#ifndef SERVICE_WIRE_INFLATE_H_
#define SERVICE_WIRE_INFLATE_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "grpc/compression.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace tilewire::service {

constexpr int64_t kInflatedPiece = 64 << 10;

// The inflated bytes of `slices`, a stream of GRPC_COMPRESS_GZIP or GRPC_COMPRESS_DEFLATE. `charge`
// is called with the bytes of each piece before they are taken.
//   kInvalidArgument    not such a stream, or one that is cut off, or more after its end
//   kResourceExhausted  more than `most_bytes`
//   what `charge` returned
absl::Status InflateSlices(grpc_compression_algorithm algorithm,
                           absl::Span<const grpc::Slice> slices, int64_t most_bytes,
                           absl::FunctionRef<absl::Status(int64_t bytes)> charge,
                           grpc::ByteBuffer* inflated);

// Replaces a message that gRPC has marked as compressed by its inflated bytes; the errors are the
// same. Any other message stays as it is.
absl::Status Inflate(int64_t most_bytes, absl::FunctionRef<absl::Status(int64_t bytes)> charge,
                     grpc::ByteBuffer* message);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_INFLATE_H_
