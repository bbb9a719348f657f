// SPDX-License-Identifier: Apache-2.0
//
// How `tilewire infer` and `tilewire load` make inputs of pictures.
#ifndef CLIENT_TOOL_PICTURE_OPTIONS_H_
#define CLIENT_TOOL_PICTURE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/image.h"

namespace tilewire::client {

struct PictureOptions {
  std::string torchvision;      // whose model's preparation; empty: resized to the model's size
  Normalization normalization;  // where there is none
};

// --torchvision, and what it excludes: --scale, --mean, --std.
void AddPreparationOptions(CLI::App* command, PictureOptions* options);

// The picture in `file` as one row of an input of `shape` [N, C, H, W].
//   kInvalidArgument  no picture, or one that is prepared for another shape
absl::StatusOr<std::string> ReadPicture(const std::string& file, const TensorMetadata& input,
                                        const std::vector<int64_t>& shape, Layout layout,
                                        const PictureOptions& options);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_PICTURE_OPTIONS_H_
