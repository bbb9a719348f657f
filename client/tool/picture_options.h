// SPDX-License-Identifier: Apache-2.0
//
// How `tilewire infer` and `tilewire load` make inputs of pictures.
#ifndef CLIENT_TOOL_PICTURE_OPTIONS_H_
#define CLIENT_TOOL_PICTURE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/image.h"
#include "client/picture_input.h"

namespace tilewire::client {

struct PictureOptions {
  std::string torchvision;      // whose model's preparation; empty: resized to the model's size
  Normalization normalization;  // where there is none
};

// --torchvision, and what it excludes: --scale, --mean, --std.
void AddPreparationOptions(CLI::App* command, PictureOptions* options);

// The picture in `file` as the bytes of one picture of `input`, which PictureInputOf() gave for
// `declared`.
//   kInvalidArgument  no picture, or one that is prepared for another shape
absl::StatusOr<std::string> ReadPicture(const std::string& file, const TensorMetadata& declared,
                                        const PictureInput& input, const PictureOptions& options);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_PICTURE_OPTIONS_H_
