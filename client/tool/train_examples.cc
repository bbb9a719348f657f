// SPDX-License-Identifier: Apache-2.0
//
// The examples of `tilewire train`.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "client/picture_input.h"
#include "client/preparation.h"
#include "client/primitive_text.h"
#include "client/progress.h"
#include "client/tool/command.h"
#include "client/tool/train_flags.h"
#include "client/training/array_file.h"
#include "client/training/model_fit.h"

namespace tilewire::client {
absl::StatusOr<std::vector<int64_t>> ParseShapeFlag(const std::string& text) {
  auto shape = ParseDims(text);
  if (shape.ok() && std::all_of(shape->begin(), shape->end(), [](int64_t dim) { return dim > 0; }))
    return shape;
  return absl::InvalidArgumentError(
      absl::StrCat("--shape=", text, " is not a shape of numbers from 1, such as 3x24x20"));
}

absl::StatusOr<NpyArray> ReadArrayFile(const std::string& flag, const std::string& file,
                                       absl::Span<const int64_t> example, OtherNames others) {
  auto bytes = ReadFile(file);
  if (!bytes.ok()) return bytes.status();
  const auto parse = others == OtherNames::kAreBytes && !HasType(file) ? ParseBytes : ParseArray;
  auto array = parse(file, *std::move(bytes), example);
  if (!array.ok())
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", array.status().message()));
  return array;
}

absl::Status RefusedPictures(const std::vector<absl::Status>& refused, int64_t count) {
  constexpr size_t kShown = 20;
  // A reason without a file's name is the model's, and the same for all.
  if (refused.size() == 1 || refused[0] == refused[1]) return refused[0];
  std::string text = absl::StrCat(refused.size(), " of ", count, " pictures are refused");
  for (size_t i = 0; i < std::min(refused.size(), kShown); ++i)
    absl::StrAppend(&text, i == 0 ? ": " : "; ", refused[i].message());
  if (refused.size() > kShown) absl::StrAppend(&text, "; and ", refused.size() - kShown, " more");
  return absl::Status(refused[0].code(), text);
}

namespace {

// Channels, rows and columns that the pictures of a folder get; only these of the result.
absl::StatusOr<PictureInput> PictureForm(const TrainFlags& flags, const TensorMetadata& input) {
  PictureInput form;
  if (!flags.shape.empty()) {
    const auto shape = ParseShapeFlag(flags.shape);
    if (!shape.ok()) return shape.status();
    if (shape->size() != 3 || ((*shape)[0] != 1 && (*shape)[0] != 3)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--shape=", flags.shape, " is not CxHxW of pictures, with a C of 1 or 3"));
    }
    form.channels = (*shape)[0], form.height = (*shape)[1], form.width = (*shape)[2];
    return form;
  }
  if (!flags.pictures.torchvision.empty()) {
    const auto preparation = TorchvisionPreparation(flags.pictures.torchvision);
    if (!preparation.ok()) return preparation.status();
    form.channels = 3, form.height = form.width = preparation->crop;
    return form;
  }
  const auto closed = std::all_of(input.shape.begin() + (input.shape.empty() ? 0 : 1),
                                  input.shape.end(), [](int64_t dim) { return dim >= 0; });
  if (!closed) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shape=CxHxW is required: the input '", ShownText(input.name), "' is ",
                     ShapeText(input.shape), " and leaves open what size pictures get"));
  }
  auto fitting = PictureInputOf(input, 1, 1, Layout::kNchw);
  if (!fitting.ok()) return fitting.status();
  form.channels = fitting->channels, form.height = fitting->height, form.width = fitting->width;
  return form;
}

// The array of so many pictures, still without their bytes.
NpyArray ArrayOf(int64_t count, const PictureInput& form) {
  return {"UINT8", {count, form.channels, form.height, form.width}, {}};
}

// All pictures as bytes of planes, [count, C, H, W].
absl::StatusOr<NpyArray> ReadPictures(const TrainFlags& flags, const ClassFolder& folder,
                                      const PictureInput& form, TensorMetadata input) {
  const int64_t count = static_cast<int64_t>(folder.pictures.size());
  NpyArray array = ArrayOf(count, form);
  input.datatype = array.datatype;
  array.bytes.reserve(count * form.channels * form.height * form.width);
  Progress progress;
  std::vector<absl::Status> refused;
  for (int64_t i = 0; i < count; ++i) {
    const auto picture = ReadPicture(folder.pictures[i].file, input, form, flags.pictures);
    if (picture.ok()) {
      array.bytes += *picture;
    } else {
      refused.push_back(picture.status());
    }
    progress.Show(static_cast<double>(i + 1) / static_cast<double>(count),
                  absl::StrFormat("%d of %d pictures read", i + 1, count));
  }
  if (!refused.empty()) return RefusedPictures(refused, count);
  return array;
}

// A class for each picture.
NpyArray LabelsOf(const ClassFolder& folder) {
  NpyArray labels{"INT64", {static_cast<int64_t>(folder.pictures.size())}, {}};
  for (const ClassFolder::Picture& picture : folder.pictures)
    labels.bytes.append(reinterpret_cast<const char*>(&picture.label), sizeof(picture.label));
  return labels;
}

absl::Status CheckClasses(const TrainFlags& flags, const ClassFolder& folder,
                          const TensorSpec& output) {
  const int64_t classes = output.dims.size() >= 2 ? output.dims[1] : -1;
  const int64_t given = static_cast<int64_t>(folder.classes.size());
  if (classes < 0 || given <= classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--folder=%s has %d folders of classes; the output '%s' has %d classes",
                      flags.folder, given, ShownText(output.name), classes));
}

absl::StatusOr<Normalization> NormalizationOf(const TrainFlags& flags) {
  if (flags.pictures.torchvision.empty()) return flags.pictures.normalization;
  const auto preparation = TorchvisionPreparation(flags.pictures.torchvision);
  if (!preparation.ok()) return preparation.status();
  return preparation->normalization;
}

absl::StatusOr<FittedInputs> FitArray(const TrainFlags& flags, const TensorSpec& input,
                                      NpyArray array) {
  auto normalization = NormalizationOf(flags);
  if (!normalization.ok()) return normalization.status();
  return FitInputs(input, {.source = SourcesOf(flags).inputs,
                           .array = std::move(array),
                           .layout = ParseLayout(flags.layout),
                           .normalization = *std::move(normalization),
                           .is_normalized_by_user = flags.normalizes});
}

// The pictures and their classes, as if they came from two files. Whether they fit is asked before
// they are read.
absl::Status FillFromFolder(const TrainFlags& flags, const TensorSpec& input,
                            const TensorSpec& output, ExampleFiles* files) {
  if (absl::Status status = CheckClasses(flags, files->folder, output); !status.ok()) return status;
  const auto form = PictureForm(flags, MetadataOf(input));
  if (!form.ok()) return form.status();
  const auto fits = FitArray(flags, input, ArrayOf(/*count=*/0, *form));
  if (!fits.ok()) return fits.status();
  auto pictures = ReadPictures(flags, files->folder, *form, MetadataOf(input));
  if (!pictures.ok()) return pictures.status();
  files->images = *std::move(pictures);
  files->labels = LabelsOf(files->folder);
  return absl::OkStatus();
}

// The targets of each loss: the labels in the form of each.
absl::StatusOr<std::vector<ExampleTensors>> FitLabels(const TrainFlags& flags,
                                                      const std::vector<LossSpec>& losses,
                                                      const Trainer& trainer,
                                                      const ExampleFiles& files) {
  const LabelArray labels{SourcesOf(flags).targets, files.labels};
  std::vector<ExampleTensors> all;
  for (size_t i = 0; i < losses.size(); ++i) {
    const auto output = OutputOf(trainer.signature(), losses[i].output);
    if (!output.ok()) return output.status();
    auto targets = FitTargets(losses[i], trainer.targets()[i], trainer.signature().outputs[*output],
                              labels, files.count);
    if (!targets.ok()) return targets.status();
    all.push_back(*std::move(targets));
  }
  return all;
}

}  // namespace

ExampleSources SourcesOf(const TrainFlags& flags) {
  if (flags.folder.empty())
    return {absl::StrCat("--images=", flags.images), absl::StrCat("--labels=", flags.labels)};
  const std::string folder = absl::StrCat("--folder=", flags.folder);
  return {folder, folder};
}

absl::StatusOr<ExampleFiles> FindExamples(const TrainFlags& flags) {
  ExampleFiles files;
  if (!flags.folder.empty()) {
    auto folder = ListClassFolder(flags.folder);
    if (!folder.ok()) {
      return absl::Status(folder.status().code(),
                          absl::StrCat("--folder: ", folder.status().message()));
    }
    files.folder = *std::move(folder);
    files.count = static_cast<int64_t>(files.folder.pictures.size());
    return files;
  }
  std::vector<int64_t> example;
  if (!flags.shape.empty()) {
    auto shape = ParseShapeFlag(flags.shape);
    if (!shape.ok()) return shape.status();
    example = *std::move(shape);
  }
  auto images = ReadArrayFile("--images", flags.images, example);
  if (!images.ok()) return images.status();
  auto labels = ReadArrayFile("--labels", flags.labels, {});
  if (!labels.ok()) return labels.status();
  files.images = *std::move(images);
  files.labels = *std::move(labels);
  files.count = files.images.shape[0];
  return files;
}

absl::StatusOr<FittedExamples> ReadExamples(const TrainFlags& flags, ExampleFiles files,
                                            int64_t trained, const Trainer& trainer) {
  const bool is_folder = !flags.folder.empty();
  const auto input = OnlyInput(trainer.signature());
  if (!input.ok()) return input.status();
  const auto index = OutputOf(trainer.signature(), flags.loss_output);
  if (!index.ok()) return index.status();
  const TensorSpec& output = trainer.signature().outputs[*index];
  absl::Status status = CheckBatchFits(*input, flags.batch, trained);
  if (status.ok() && is_folder) status = FillFromFolder(flags, *input, output, &files);
  if (!status.ok()) return status;
  const std::vector<LossSpec> losses = LossesOf(flags).value();
  auto targets = FitLabels(flags, losses, trainer, files);
  if (!targets.ok()) return targets.status();
  auto inputs = FitArray(flags, *input, std::move(files.images));
  if (!inputs.ok()) return inputs.status();
  return FittedExamples{
      Dataset(std::move(inputs->tensors), std::move(inputs->values), *std::move(targets)),
      {losses[0].kind,
       *index,
       losses[0].ignore_index,
       losses[0].class_weights,
       {losses.begin() + 1, losses.end()}}};
}

}  // namespace tilewire::client
