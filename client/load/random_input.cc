// SPDX-License-Identifier: Apache-2.0
#include "client/load/random_input.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/npy.h"

namespace tilewire::client {
namespace {

constexpr double kMostMessageBytes = 2e9;  // of protobuf

}  // namespace

absl::StatusOr<Tensor> RandomInput(const TensorMetadata& metadata, int64_t batch, int64_t free_size,
                                   Layout layout, uint64_t seed) {
  const int64_t size = SizeOfDatatype(metadata.datatype);
  if (size == 0) {
    return absl::UnimplementedError(absl::StrCat("no random input of datatype ", metadata.datatype,
                                                 " for '", metadata.name, "'"));
  }
  Tensor tensor;
  tensor.name = metadata.name;
  tensor.datatype = metadata.datatype;
  double bytes = size;
  tensor.shape = ClosedShape(metadata, batch, free_size);
  for (int64_t dim : tensor.shape) bytes *= dim;
  if (bytes > kMostMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("input '%s' of %d rows takes %.0f MB; a message holds 2 GB at most",
                        metadata.name, batch, bytes / 1e6));
  }
  const auto count = static_cast<int64_t>(bytes) / size;
  if (layout == Layout::kNhwc && tensor.shape.size() >= 3) {
    tensor.layout = layout;
    std::rotate(tensor.shape.begin() + 1, tensor.shape.begin() + 2, tensor.shape.end());
  }
  tensor.bytes.resize(count * size);
  uint64_t state = seed * 2 + 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    if (metadata.datatype == "FP32" || metadata.datatype == "FP64") {
      const float value = static_cast<float>(state >> 40) * 0x1p-24f;
      const double wide = value;
      std::memcpy(&tensor.bytes[i * size], size == 4 ? static_cast<const void*>(&value) : &wide,
                  size);
    } else {
      tensor.bytes[i * size] =
          static_cast<char>((state >> 60) & 1);  // 0 or 1: a value of every type
    }
  }
  return tensor;
}

}  // namespace tilewire::client
