// SPDX-License-Identifier: Apache-2.0
#include "client/tool/evaluation_set.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/amount_text.h"
#include "client/tensor_values.h"
#include "client/tool/command.h"
#include "client/tool/train_flags.h"
#include "client/training/array_file.h"
#include "client/training/model_fit.h"

namespace tilewire::client {
namespace {

absl::StatusOr<std::vector<int64_t>> ReadLabels(const std::string& file) {
  const auto array = ReadArrayFile("--labels", file, {}, OtherNames::kAreBytes);
  if (!array.ok()) return array.status();
  const auto numbers = NumbersOf({.datatype = array->datatype, .bytes = array->bytes});
  if (!numbers.ok()) return numbers.status();
  if (array->shape.size() != 1 || IsFloatingPoint(array->datatype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--labels=", file, " holds ", array->datatype, " of shape ",
                     ShapeText(array->shape), "; the class of each example is needed, an integer"));
  }
  return std::vector<int64_t>(numbers->begin(), numbers->end());
}

}  // namespace

absl::StatusOr<EvaluationSet> EvaluationSet::Read(const std::string& images,
                                                  const std::string& labels,
                                                  const std::string& shape) {
  std::vector<int64_t> example;
  if (!HasShape(images)) {
    if (shape.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--images=", images, " has no header: --shape of one example is required"));
    }
    auto parsed = ParseShapeFlag(shape);
    if (!parsed.ok()) return parsed.status();
    example = *std::move(parsed);
  } else if (!shape.empty()) {
    return absl::InvalidArgumentError("--shape: the file of --images tells its shape");
  }
  EvaluationSet set;
  set.source_ = absl::StrCat("--images=", images);
  auto array = ReadArrayFile("--images", images, example, OtherNames::kAreBytes);
  if (!array.ok()) return array.status();
  set.array_ = *std::move(array);
  set.are_pictures_ = set.array_.datatype == "UINT8" && set.array_.shape.size() == 4;
  auto classes = ReadLabels(labels);
  if (!classes.ok()) return classes.status();
  set.labels_ = *std::move(classes);
  if (set.array_.shape[0] == set.count()) return set;
  return absl::InvalidArgumentError(absl::StrCat(images, " has ", set.array_.shape[0],
                                                 " examples, and ", labels, " has ",
                                                 CountText(set.count(), "label")));
}

Image EvaluationSet::PictureAt(int64_t i) const {
  const int64_t channels = array_.shape[1], height = array_.shape[2], width = array_.shape[3];
  Image image{height, width, channels, std::vector<uint8_t>(channels * height * width)};
  const char* planes = array_.bytes.data() + i * image.samples.size();
  for (int64_t pixel = 0; pixel < height * width; ++pixel) {
    for (int64_t c = 0; c < channels; ++c) {
      image.samples[pixel * channels + c] =
          static_cast<uint8_t>(planes[c * height * width + pixel]);
    }
  }
  return image;
}

absl::Status EvaluationSet::FitArrays(const TensorMetadata& input,
                                      const Normalization& normalization,
                                      bool is_normalized_by_user) {
  const auto spec = SpecOf(input);
  if (!spec.ok()) return spec.status();
  auto inputs = FitInputs(*spec, {.source = source_,
                                  .array = std::move(array_),
                                  .normalization = normalization,
                                  .is_normalized_by_user = is_normalized_by_user});
  if (!inputs.ok()) return inputs.status();
  input_ = input;
  fitted_.emplace(std::move(inputs->tensors), std::move(inputs->values),
                  std::vector<ExampleTensors>());
  return absl::OkStatus();
}

Tensor EvaluationSet::TensorAt(int64_t i) const {
  BatchTensor taken = fitted_->TakeInputs({&i, 1});
  return {.name = input_.name,
          .datatype = input_.datatype,
          .shape = {taken.dims.begin(), taken.dims.end()},
          .bytes = std::move(taken.bytes)};
}

}  // namespace tilewire::client
