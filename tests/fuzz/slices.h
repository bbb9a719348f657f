// SPDX-License-Identifier: Apache-2.0
//
// A fuzzer's bytes as a message that arrived in slices of one size.
#ifndef TESTS_FUZZ_SLICES_H_
#define TESTS_FUZZ_SLICES_H_

#include <algorithm>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"

namespace tilewire::fuzz {

// The bytes are not copied and must outlive the result. Slices of 0 bytes stand for one slice.
inline grpc::ByteBuffer InSlices(absl::string_view bytes, size_t size) {
  size = size == 0 ? std::max<size_t>(bytes.size(), 1) : size;
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += size) {
    const absl::string_view piece = bytes.substr(at, size);
    slices.emplace_back(piece.data(), piece.size(), grpc::Slice::STATIC_SLICE);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace tilewire::fuzz

#endif  // TESTS_FUZZ_SLICES_H_
