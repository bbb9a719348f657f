// SPDX-License-Identifier: Apache-2.0
//
// Elements that travel in protobuf's typed fields. Thread-compatible.
#ifndef SERVICE_WIRE_TYPED_CONTENTS_H_
#define SERVICE_WIRE_TYPED_CONTENTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/memory/data_type.h"
#include "protos/open_inference.pb.h"

namespace tilewire::service {

// The contents as row-major elements of `type`: a view of `contents`, or of `converted`, which is
// filled where the element on the wire is wider.
//   kInvalidArgument  a field that is not the type's, another number of elements, a value outside
//                     the type's range, or a type that travels raw only
absl::StatusOr<absl::string_view> TypedBytes(const inference::InferTensorContents& contents,
                                             DataType type, int64_t elements,
                                             std::string* converted);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_TYPED_CONTENTS_H_
