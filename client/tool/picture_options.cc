// SPDX-License-Identifier: Apache-2.0
#include "client/tool/picture_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/preparation.h"
#include "client/tool/command.h"

namespace tilewire::client {

void AddPreparationOptions(CLI::App* command, PictureOptions* options) {
  AddNormalizationOptions(command, &options->normalization);
  CLI::Option* torchvision = command->add_option(
      "--torchvision", options->torchvision,
      "resize, crop and normalize as torchvision does for this model, such as resnet50 or, with "
      "its older weights, resnet50:V1");
  torchvision->check([](const std::string& name) {
    return std::string(TorchvisionPreparation(name).status().message());
  });
  for (const char* other : {"--scale", "--mean", "--std"})
    torchvision->excludes(command->get_option(other));
}

absl::StatusOr<std::string> ReadPicture(const std::string& file, const TensorMetadata& declared,
                                        const PictureInput& input, const PictureOptions& options) {
  const auto content = ReadFile(file);
  if (!content.ok()) return content.status();
  const auto image = DecodeImage(*content);
  if (!image.ok())
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", image.status().message()));
  const Image colored = WithChannels(*image, input.channels);
  if (options.torchvision.empty()) {
    return ToInput(ResizeAndCrop(colored, input.height, input.width), declared.datatype,
                   input.samples, options.normalization);
  }
  const auto preparation = TorchvisionPreparation(options.torchvision);
  if (!preparation.ok()) return preparation.status();
  const int64_t side = preparation->crop;
  if (input.channels != 3 || input.height != side || input.width != side) {
    const bool is_open = std::any_of(declared.shape.end() - 3, declared.shape.end(),
                                     [](int64_t dim) { return dim < 0; });
    return absl::InvalidArgumentError(
        absl::StrFormat("--torchvision=%s makes 3x%dx%d of a picture, input '%s' is %s%s",
                        options.torchvision, side, side, declared.name, ShapeText(declared.shape),
                        is_open ? absl::StrCat("; --free_size=", side, " fits") : ""));
  }
  return ToInput(Prepare(colored, *preparation), declared.datatype, input.samples,
                 preparation->normalization);
}

}  // namespace tilewire::client
