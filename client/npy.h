// SPDX-License-Identifier: Apache-2.0
//
// Arrays as numpy.save() writes them (format 1 to 3, little-endian, row-major): a header that names
// type and shape, then the elements.
#ifndef CLIENT_NPY_H_
#define CLIENT_NPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tilewire::client {

struct NpyArray {
  std::string datatype;  // of the protocol: "FP32"
  std::vector<int64_t> shape;
  std::string bytes;
};

// kInvalidArgument  not such a file, cut short, of another type, or in column-major order
absl::StatusOr<NpyArray> ReadNpy(absl::string_view file);

// Bytes of one element; 0 if the protocol has no such type of a fixed size.
int64_t SizeOfDatatype(absl::string_view datatype);

}  // namespace tilewire::client

#endif  // CLIENT_NPY_H_
