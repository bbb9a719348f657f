// SPDX-License-Identifier: Apache-2.0
//
// The examples of `tilewire tune`.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/amount_text.h"
#include "client/picture_input.h"
#include "client/preparation.h"
#include "client/progress.h"
#include "client/tool/command.h"
#include "client/tool/train_flags.h"
#include "client/tool/tune/tune_flags.h"
#include "client/training/array_file.h"
#include "client/training/class_folder.h"
#include "client/training/model_fit.h"
#include "client/tuning/free_memory.h"

namespace tilewire::client {
namespace {

// All files below the folder by name, without hidden ones.
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::recursive_directory_iterator at(folder, error), end;
  while (!error && at != end) {
    const bool is_hidden = at->path().filename().string().front() == '.';
    std::error_code unknown;  // a dangling link is not a file
    if (is_hidden && at->is_directory(unknown)) at.disable_recursion_pending();
    if (!is_hidden && at->is_regular_file(unknown)) files.push_back(at->path().string());
    at.increment(error);
  }
  if (error)
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read --images=", folder));
  if (files.empty())
    return absl::InvalidArgumentError(absl::StrCat("--images=", folder, " has no picture"));
  std::sort(files.begin(), files.end());
  return files;
}

// "'image', 'mask'"
std::string NamesOf(const ModelSignature& signature) {
  return absl::StrJoin(signature.inputs, ", ", [](std::string* text, const TensorSpec& input) {
    absl::StrAppend(text, "'", ShownText(input.name), "'");
  });
}

// Each example is a run of its own, of one row.
absl::Status CheckRows(const ModelSignature& signature) {
  for (const TensorSpec& input : signature.inputs) {
    if (input.any_rank || input.dims.empty() || input.dims[0] <= 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the model takes batches of ", input.dims[0], " only (input '", ShownText(input.name),
        "'), and each picture or row of an array is run by itself: an export with a batch of 1, "
        "or an open one, takes them"));
  }
  return absl::OkStatus();
}

// Examples are held as the model takes them: pictures as floats.
absl::Status CheckMemoryFor(const std::string& flag, int64_t count, int64_t bytes) {
  return CheckMemory(flag, count, bytes, FreeMemory(""));
}

// The files of the pictures, with their classes where folders tell them.
absl::StatusOr<TuningExamples> ListPictures(const TuneFlags& flags) {
  TuningExamples listed;
  if (flags.folder.empty()) {
    auto files = FilesBelow(flags.images);
    if (!files.ok()) return files.status();
    listed.files = *std::move(files);
    return listed;
  }
  auto folder = ListClassFolder(flags.folder);
  if (!folder.ok()) {
    return absl::Status(folder.status().code(),
                        absl::StrCat("--folder: ", folder.status().message()));
  }
  for (const ClassFolder::Picture& picture : folder->pictures) {
    listed.files.push_back(picture.file);
    listed.labels.push_back(picture.label);
  }
  listed.classes = std::move(folder->classes);
  return listed;
}

// The form that a picture takes for the only input of the model.
absl::StatusOr<PictureInput> PictureFormOf(const TuneFlags& flags,
                                           const ModelSignature& signature) {
  const auto input = OnlyInput(signature);
  if (!input.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.status().message(),
                     ". Give --array=INPUT=FILE for each input in the place of "
                     "pictures: the inputs are ",
                     NamesOf(signature)));
  }
  int64_t side = flags.free_size;
  if (!flags.pictures.torchvision.empty()) {
    const auto preparation = TorchvisionPreparation(flags.pictures.torchvision);
    if (!preparation.ok()) return preparation.status();
    side = preparation->crop;
  }
  auto form = PictureInputOf(MetadataOf(*input), /*batch=*/1, side, Layout::kNchw);
  if (form.ok()) form->tensor.name = input->name;
  return form;
}

// Reads the files one after the other, with progress.
absl::StatusOr<std::vector<OwnedExample>> ReadPictures(const std::vector<std::string>& files,
                                                       const TuneFlags& flags,
                                                       const TensorMetadata& metadata,
                                                       const PictureInput& form) {
  std::vector<OwnedExample> examples;
  Progress progress;
  std::vector<absl::Status> refused;
  const auto count = static_cast<int64_t>(files.size());
  for (int64_t i = 0; i < count; ++i) {
    auto bytes = ReadPicture(files[i], metadata, form, flags.pictures);
    if (bytes.ok()) {
      Tensor tensor = form.tensor;
      tensor.bytes = *std::move(bytes);
      examples.push_back({OwnedOf(std::move(tensor))});
    } else {
      refused.push_back(bytes.status());
    }
    progress.Show(static_cast<double>(i + 1) / static_cast<double>(count),
                  absl::StrFormat("%d of %d pictures read", i + 1, count));
  }
  if (!refused.empty()) return RefusedPictures(refused, count);
  return examples;
}

absl::StatusOr<TuningExamples> ReadPictureExamples(const TuneFlags& flags,
                                                   const ModelSignature& signature) {
  const auto form = PictureFormOf(flags, signature);
  if (!form.ok()) return form.status();
  auto listed = ListPictures(flags);
  if (!listed.ok()) return listed.status();
  const TensorMetadata metadata = MetadataOf(signature.inputs[0]);
  const absl::Status fits = CheckMemoryFor(
      flags.folder.empty() ? "--images" : "--folder", static_cast<int64_t>(listed->files.size()),
      form->channels * form->height * form->width * SizeOfDatatype(metadata.datatype));
  if (!fits.ok()) return fits;
  auto examples = ReadPictures(listed->files, flags, metadata, *form);
  if (!examples.ok()) return examples.status();
  listed->examples = *std::move(examples);
  return listed;
}

// The input that an --array is for, and its file.
absl::StatusOr<std::pair<TensorSpec, std::string>> InputNamed(const std::string& array,
                                                              const ModelSignature& signature) {
  for (const TensorSpec& input : signature.inputs) {
    const std::string prefix = absl::StrCat(input.name, "=");
    if (array.rfind(prefix, 0) == 0) return std::pair(input, array.substr(prefix.size()));
  }
  if (signature.inputs.size() == 1 && array.find('=') == std::string::npos)
    return std::pair(signature.inputs[0], array);
  return absl::InvalidArgumentError(absl::StrCat(
      "--array=", array, " names none of the model's inputs, which are ", NamesOf(signature)));
}

absl::StatusOr<InputArray> ReadInputArray(const TuneFlags& flags, const std::string& file) {
  std::vector<int64_t> example;
  if (!HasShape(file)) {
    if (flags.shape.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--array=", file, " has no header: --shape=CxHxW of one example is required"));
    }
    auto shape = ParseShapeFlag(flags.shape);
    if (!shape.ok()) return shape.status();
    example = *std::move(shape);
  }
  auto array = ReadArrayFile("--array", file, example);
  if (!array.ok()) return array.status();
  return InputArray{.source = absl::StrCat("--array=", file),
                    .array = *std::move(array),
                    .normalization = flags.pictures.normalization,
                    .is_normalized_by_user = flags.normalizes};
}

absl::StatusOr<TuningExamples> ReadArrayExamples(const TuneFlags& flags,
                                                 const ModelSignature& signature) {
  TuningExamples read;
  for (const std::string& one : flags.arrays) {
    const auto target = InputNamed(one, signature);
    if (!target.ok()) return target.status();
    auto array = ReadInputArray(flags, target->second);
    if (!array.ok()) return array.status();
    const NpyArray& held = array->array;
    const int64_t rows = held.shape.empty() ? 1 : std::max<int64_t>(held.shape[0], 1);
    const bool becomes_floats = held.datatype == "UINT8" && target->first.type == DataType::kF32;
    const auto bytes = static_cast<int64_t>(held.bytes.size()) / rows;
    const absl::Status fits =
        CheckMemoryFor("--array", rows, becomes_floats ? bytes * int64_t{sizeof(float)} : bytes);
    if (!fits.ok()) return fits;
    const absl::Status added = AddArray(target->first, *std::move(array), &read.examples);
    if (!added.ok()) return added;
  }
  return read;
}

absl::StatusOr<TuningExamples> ReadInputs(const TuneFlags& flags, const ModelSignature& signature) {
  if (!flags.is_made_up()) {
    if (absl::Status rows = CheckRows(signature); !rows.ok()) return rows;
  }
  if (!flags.images.empty() || !flags.folder.empty()) return ReadPictureExamples(flags, signature);
  if (!flags.arrays.empty()) return ReadArrayExamples(flags, signature);
  const auto one = MakeUpExamples(signature, 1, flags.free_size, flags.seed);
  if (!one.ok()) return one.status();
  int64_t bytes = 0;
  for (const OwnedTensor& tensor : one->front())
    bytes += static_cast<int64_t>(tensor.tensor.bytes.size());
  const absl::Status fits = CheckMemoryFor("--made_up", flags.made_up, bytes);
  if (!fits.ok()) return fits;
  auto made_up = MakeUpExamples(signature, flags.made_up, flags.free_size, flags.seed);
  if (!made_up.ok()) return made_up.status();
  return TuningExamples{.examples = *std::move(made_up)};
}

}  // namespace

absl::StatusOr<TuningExamples> ReadTuningExamples(const TuneFlags& flags,
                                                  const ModelSignature& signature) {
  auto read = ReadInputs(flags, signature);
  if (!read.ok() || flags.labels.empty()) return read;
  const auto array = ReadArrayFile("--labels", flags.labels, {});
  if (!array.ok()) return array.status();
  auto labels = LabelsOf(absl::StrCat("--labels=", flags.labels), *array,
                         static_cast<int64_t>(read->examples.size()));
  if (!labels.ok()) return labels.status();
  read->labels = *std::move(labels);
  return read;
}

}  // namespace tilewire::client
