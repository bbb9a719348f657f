// SPDX-License-Identifier: Apache-2.0
//
// Arrays of examples in files: NumPy's (.npy), whose first dimension counts the examples, and
// elements without a header, whose type the end of the file's name tells (.u8, .s32, .s64, .f32;
// little-endian, row-major).
#ifndef CLIENT_TRAINING_ARRAY_FILE_H_
#define CLIENT_TRAINING_ARRAY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/npy.h"

namespace tilewire::client {

// Whether the name is that of a file which tells its shape itself.
bool HasShape(absl::string_view name);

// Whether the name tells the type of the elements.
bool HasType(absl::string_view name);

// `example` is the shape of one example of a file without a header; empty: one element.
//   kInvalidArgument  a name that tells no type, another number of bytes than some examples have,
//                     no example, and errors of ReadNpy(); each with the name
absl::StatusOr<NpyArray> ParseArray(absl::string_view name, std::string bytes,
                                    absl::Span<const int64_t> example);
// The same of a file of bytes, whatever its name is.
absl::StatusOr<NpyArray> ParseBytes(absl::string_view name, std::string bytes,
                                    absl::Span<const int64_t> example);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_ARRAY_FILE_H_
