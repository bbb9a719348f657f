// SPDX-License-Identifier: Apache-2.0
//
// How pictures become an input of a model: where its channels, rows and columns stand. Pure
// functions.
#ifndef CLIENT_PICTURE_INPUT_H_
#define CLIENT_PICTURE_INPUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/tensor.h"

namespace tilewire::client {

struct PictureInput {
  Tensor tensor;         // all but its bytes; no dimension is open
  int64_t pictures = 1;  // that follow each other in its bytes
  int64_t channels = 0, height = 0, width = 0;
  Layout samples = Layout::kNchw;  // the order of a picture's samples in its bytes
};

// An input [N,C,H,W], which is sent in `layout`, or [N,H,W,C], [C,H,W] or [H,W,C], which are sent
// as the model declares them. C is 1 or 3; where both places have it, the first one counts. `batch`
// and `free_size` stand for an open N and for open H and W.
//   kInvalidArgument  no picture fits; kNhwc, or a batch other than 1, of an input that has no
//                     other order or no batch
absl::StatusOr<PictureInput> PictureInputOf(const TensorMetadata& input, int64_t batch,
                                            int64_t free_size, Layout layout);

// The same for one picture of known sizes, of any number of channels. Where it fits with its
// channels first and last, they are first. kNhwc is the other order of [N,C,H,W] alone.
//   kInvalidArgument  the picture does not fit; kNhwc of an input that has no other order
absl::StatusOr<PictureInput> InputOfPicture(const TensorMetadata& input, int64_t channels,
                                            int64_t height, int64_t width, Layout layout);

// Whether InputOfPicture() takes kNhwc too.
bool HasBothLayouts(const PictureInput& as_declared);

}  // namespace tilewire::client

#endif  // CLIENT_PICTURE_INPUT_H_
