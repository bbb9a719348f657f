// SPDX-License-Identifier: Apache-2.0
//
// The parameter `layout` of inputs and requested outputs, and the names of types on the wire. Pure
// functions.
#ifndef SERVICE_WIRE_TENSOR_LAYOUT_H_
#define SERVICE_WIRE_TENSOR_LAYOUT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/model.h"
#include "google/protobuf/map.h"
#include "protos/open_inference.pb.h"

namespace tilewire::service {

using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

// "FP32" for kF32; "" for a type that the protocol does not know.
absl::string_view DatatypeName(DataType type);

// The layout that `parameters` ask for, nchw by default, for a tensor of this rank.
//   kInvalidArgument  not a string, another word, or nhwc for a rank outside 3 to 5
absl::StatusOr<Layout> LayoutParameter(const Parameters& parameters, int rank);

// Between the order of `layout` and the logical order [N, C, spatial...]; below rank 3 they are
// equal.
Dims ToLogical(Dims shape, Layout layout);
Dims FromLogical(Dims dims, Layout layout);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_TENSOR_LAYOUT_H_
