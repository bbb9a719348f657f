// SPDX-License-Identifier: Apache-2.0
#include "client/training/model_fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/amount_text.h"
#include "client/tensor_values.h"

namespace tilewire::client {
namespace {

constexpr std::pair<DataType, absl::string_view> kDatatypes[] = {
    {DataType::kF32, "FP32"},   {DataType::kU8, "UINT8"},   {DataType::kS8, "INT8"},
    {DataType::kS32, "INT32"},  {DataType::kS64, "INT64"},  {DataType::kF16, "FP16"},
    {DataType::kBf16, "BF16"},  {DataType::kF64, "FP64"},   {DataType::kBool, "BOOL"},
    {DataType::kS16, "INT16"},  {DataType::kU16, "UINT16"}, {DataType::kU32, "UINT32"},
    {DataType::kU64, "UINT64"},
};

absl::string_view DatatypeOf(DataType type) {
  for (const auto& [engine_type, datatype] : kDatatypes) {
    if (engine_type == type) return datatype;
  }
  return "";
}

std::string SpecText(const TensorSpec& spec) {
  return absl::StrCat("'", ShownText(spec.name), "', which is ",
                      spec.any_rank ? "of any shape" : ShapeText(spec.dims));
}

Dims ExampleOf(const std::vector<int64_t>& shape) { return {shape.begin() + 1, shape.end()}; }

bool FitsExample(const TensorSpec& spec, Dims example) {
  const bool is_open = spec.dims.empty() || spec.dims[0] < 0;
  example.insert(example.begin(), is_open ? 1 : spec.dims[0]);
  return spec.Allows(example);
}

int64_t ElementsOf(const Dims& dims) { return ElementCount(dims).value_or(0); }

// How the elements of an example become those of the model.
struct Placement {
  Dims dims;
  ::tilewire::Layout layout = ::tilewire::Layout::kNchw;
  int64_t channels = 1, run = 1;  // of an example as the model has it
  bool planes_to_pixels = false;
};

absl::StatusOr<Placement> PlaceExamples(const TensorSpec& input, const InputArray& inputs) {
  const Dims example = ExampleOf(inputs.array.shape);
  const int64_t rank = static_cast<int64_t>(example.size());
  if (inputs.layout == Layout::kNhwc && rank >= 2) {
    Dims logical = example;
    std::rotate(logical.begin(), logical.end() - 1, logical.end());
    if (FitsExample(input, logical)) {
      return Placement{
          .dims = logical, .layout = ::tilewire::Layout::kNhwc, .channels = example.back()};
    }
    // A model may declare pixels itself.
    const bool are_pixels = example.back() == 1 || example.back() == 3;
    if (are_pixels && FitsExample(input, example))
      return Placement{.dims = example, .channels = example.back()};
  }
  if (inputs.layout == Layout::kNchw) {
    if (FitsExample(input, example)) {
      const int64_t channels = rank >= 2 ? example[0] : 1;
      return Placement{
          .dims = example, .channels = channels, .run = ElementsOf(example) / channels};
    }
    Dims pixels = example;
    if (rank == 3) std::rotate(pixels.begin(), pixels.begin() + 1, pixels.end());
    if (rank == 3 && FitsExample(input, pixels))
      return Placement{.dims = pixels, .channels = example[0], .planes_to_pixels = true};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      inputs.source, ": examples of ", rank == 0 ? "one number" : ShapeText(example),
      inputs.layout == Layout::kNhwc ? " in nhwc" : "", " do not fit the input ", SpecText(input)));
}

// Each example's [C, pixels] becomes [pixels, C].
std::string PlanesToPixels(const std::string& planes, int64_t size, int64_t channels,
                           int64_t element) {
  std::string all(planes.size(), '\0');
  const int64_t pixels = size / element / channels;
  for (int64_t first = 0; first < static_cast<int64_t>(planes.size()); first += size) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        std::memcpy(&all[first + (pixel * channels + c) * element],
                    &planes[first + (c * pixels + pixel) * element], element);
      }
    }
  }
  return all;
}

absl::StatusOr<ByteValues> FitValues(const TensorSpec& input, const Placement& placement,
                                     const InputArray& inputs) {
  const std::string& given = inputs.array.datatype;
  if (given != "UINT8" || input.type != DataType::kF32) {
    if (given != DatatypeOf(input.type)) {
      const bool takes_floats = input.type == DataType::kF32;
      return absl::InvalidArgumentError(absl::StrCat(
          inputs.source, " holds ", given, "; the input '", ShownText(input.name), "' takes ",
          DatatypeOf(input.type), takes_floats ? " or bytes (UINT8)" : "",
          takes_floats ? ": in Python, numpy.save(file, array.astype(numpy.float32)) writes such a "
                         "file"
                       : ""));
    }
    if (!inputs.is_normalized_by_user) return ByteValues();
    return absl::InvalidArgumentError(
        absl::StrCat("--scale, --mean and --std turn bytes into floats; ", inputs.source, " holds ",
                     given, " for an input of that type"));
  }
  size_t values = 1;
  for (const auto& [flag, all] : {std::pair{"--mean", &inputs.normalization.mean},
                                  std::pair{"--std", &inputs.normalization.std}}) {
    values = std::max(values, all->size());
    if (all->size() == 1 || static_cast<int64_t>(all->size()) == placement.channels) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " has ", all->size(), " values; the examples of ", inputs.source,
                     " have ", CountText(placement.channels, "channel")));
  }
  if (values == 1) return ByteValues(inputs.normalization, 1, 1);
  return ByteValues(inputs.normalization, placement.channels, placement.run);
}

// One number that is not finite makes those of a whole update so.
absl::Status CheckFinite(const InputArray& inputs) {
  if (inputs.array.datatype != "FP32" || inputs.array.shape.empty()) return absl::OkStatus();
  const auto* numbers = reinterpret_cast<const float*>(inputs.array.bytes.data());
  const auto* end = numbers + inputs.array.bytes.size() / sizeof(float);
  const auto* found = std::find_if_not(numbers, end, [](float x) { return std::isfinite(x); });
  if (found == end) return absl::OkStatus();
  const int64_t each = (end - numbers) / inputs.array.shape[0];
  return absl::InvalidArgumentError(absl::StrCat(inputs.source, ": example ",
                                                 (found - numbers) / each, " has ", *found,
                                                 ", which is not finite"));
}

// The shape of one example's target.
absl::StatusOr<Dims> TargetShape(const TensorSpec& target, const LabelArray& labels,
                                 int64_t count) {
  const std::vector<int64_t>& shape = labels.array.shape;
  const int64_t elements = ElementsOf(Dims(shape.begin(), shape.end()));
  Dims example(target.dims.begin() + (target.dims.empty() ? 0 : 1), target.dims.end());
  const bool is_closed = !target.any_rank && std::all_of(example.begin(), example.end(),
                                                         [](int64_t d) { return d > 0; });
  const bool counts = shape[0] == count || shape.size() == 1;
  if (is_closed && counts && elements == count * ElementsOf(example)) return example;
  if (!is_closed && shape[0] == count && FitsExample(target, ExampleOf(shape)))
    return ExampleOf(shape);
  const std::string each = is_closed && ElementsOf(example) == 1
                               ? "one label each"
                               : absl::StrCat("targets of ", ShapeText(example), " each");
  return absl::InvalidArgumentError(absl::StrCat(labels.source, " is of shape ", ShapeText(shape),
                                                 "; ", CountText(count, "example"),
                                                 count == 1 ? " needs " : " need ", each));
}

// Why no class has this number; empty if one has, or the label is ignored.
std::string WhyNoClass(const LossSpec& loss, double value, int64_t classes) {
  if (value >= 0 && (classes < 0 || value < static_cast<double>(classes))) return "";
  if (loss.ignore_index && value == static_cast<double>(*loss.ignore_index)) return "";
  const std::string ignored =
      loss.ignore_index ? absl::StrCat(", nor --ignore_index=", *loss.ignore_index) : "";
  return classes < 0
             ? absl::StrCat("is not a class, which are numbers from 0", ignored)
             : absl::StrCat("is not one of the ", classes, " classes 0 to ", classes - 1, ignored);
}

// Why the loss does not take the value; empty if it does. `classes` of the output; -1: not known.
std::string WhyNot(const LossSpec& loss, double value, int64_t classes) {
  switch (loss.kind) {
    case LossSpec::Kind::kSoftmaxCrossEntropy:
      return WhyNoClass(loss, value, classes);
    case LossSpec::Kind::kBinaryCrossEntropy:
      return value >= 0 && value <= 1 ? "" : "is not in 0 to 1, which binary_cross_entropy takes";
    case LossSpec::Kind::kMeanSquaredError:
    case LossSpec::Kind::kHuber:
      return std::isfinite(value) ? "" : "is not finite";
  }
  return "";
}

template <typename T>
std::string BytesAs(const std::vector<double>& numbers) {
  std::string bytes;
  bytes.reserve(numbers.size() * sizeof(T));
  for (const double number : numbers) {
    const T value = static_cast<T>(number);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return bytes;
}

absl::StatusOr<std::string> TargetBytes(const TensorSpec& target,
                                        const std::vector<double>& numbers) {
  if (target.type == DataType::kS32) return BytesAs<int32_t>(numbers);
  if (target.type == DataType::kS64) return BytesAs<int64_t>(numbers);
  if (target.type == DataType::kF32) return BytesAs<float>(numbers);
  return absl::UnimplementedError(
      absl::StrCat("targets of ", DatatypeOf(target.type), ", as of ", SpecText(target)));
}

}  // namespace

TensorMetadata MetadataOf(const TensorSpec& spec) {
  return {spec.name, std::string(DatatypeOf(spec.type)), {spec.dims.begin(), spec.dims.end()}};
}

absl::StatusOr<TensorSpec> SpecOf(const TensorMetadata& tensor) {
  for (const auto& [type, datatype] : kDatatypes) {
    if (datatype == tensor.datatype)
      return TensorSpec{.name = tensor.name,
                        .type = type,
                        .dims = Dims(tensor.shape.begin(), tensor.shape.end())};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", ShownText(tensor.name), "' takes ", ShownText(tensor.datatype), ", which no array has"));
}

absl::StatusOr<TensorSpec> OnlyInput(const ModelSignature& signature) {
  if (signature.inputs.size() == 1) return signature.inputs[0];
  return absl::InvalidArgumentError(absl::StrCat("the model has ", signature.inputs.size(),
                                                 " inputs; examples are of models with one"));
}

absl::StatusOr<int> OutputOf(const ModelSignature& signature, absl::string_view name) {
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    if (name.empty() || signature.outputs[i].name == name) return static_cast<int>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--loss_output=", name, ": the model has no such output; it has ",
                   absl::StrJoin(signature.outputs, ", ", [](std::string* out, const auto& spec) {
                     absl::StrAppend(out, ShownText(spec.name));
                   })));
}

absl::StatusOr<FittedInputs> FitInputs(const TensorSpec& input, InputArray inputs) {
  const auto placement = PlaceExamples(input, inputs);
  if (!placement.ok()) return placement.status();
  if (absl::Status finite = CheckFinite(inputs); !finite.ok()) return finite;
  auto values = FitValues(input, *placement, inputs);
  if (!values.ok()) return values.status();
  FittedInputs fitted{{.dims = placement->dims, .layout = placement->layout}, *std::move(values)};
  const int64_t element = SizeOfDatatype(inputs.array.datatype);
  fitted.tensors.size = ElementsOf(placement->dims) * element;
  fitted.tensors.bytes =
      placement->planes_to_pixels
          ? PlanesToPixels(inputs.array.bytes, fitted.tensors.size, placement->channels, element)
          : std::move(inputs.array.bytes);
  return fitted;
}

absl::Status CheckBatchFits(const TensorSpec& input, int64_t batch, int64_t trained) {
  if (input.any_rank || input.dims.empty() || input.dims[0] < 0) return absl::OkStatus();
  const int64_t only = input.dims[0];
  if (batch != only) {
    return absl::InvalidArgumentError(absl::StrCat("--batch=", batch,
                                                   ": the model takes batches of ", only,
                                                   " only (input ", SpecText(input), ")"));
  }
  if (trained % only == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model takes batches of ", only, " only, and the ", trained,
                   " examples that are trained on are not a multiple of it; an export with an open "
                   "batch dimension takes all"));
}

absl::StatusOr<ExampleTensors> FitTargets(const LossSpec& loss, const TensorSpec& target,
                                          const TensorSpec& output, const LabelArray& labels,
                                          int64_t count) {
  const NpyArray& array = labels.array;
  const bool takes_labels = loss.kind == LossSpec::Kind::kSoftmaxCrossEntropy;
  if (takes_labels && IsFloatingPoint(array.datatype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(labels.source, " holds ", array.datatype,
                     "; cross_entropy takes classes, which are integers: in Python, "
                     "numpy.save(file, labels.astype(numpy.int64)), or labels.argmax(1) of rows "
                     "with a number for each class"));
  }
  const int64_t classes = output.dims.size() >= 2 ? output.dims[1] : -1;
  if (takes_labels && classes == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("cross_entropy is of several classes, and the output ", SpecText(output),
                     ", has one number: --loss=mse, huber or binary_cross_entropy"));
  }
  const auto dims = TargetShape(target, labels, count);
  if (!dims.ok()) return dims.status();
  const auto numbers = NumbersOf({.datatype = array.datatype, .bytes = array.bytes});
  if (!numbers.ok()) return numbers.status();
  const int64_t each = ElementsOf(*dims);
  for (size_t i = 0; i < numbers->size(); ++i) {
    const std::string why = WhyNot(loss, (*numbers)[i], classes);
    if (why.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(labels.source, ": ", (*numbers)[i],
                                                   " of example ", i / each, " ", why, " (output ",
                                                   SpecText(output), ")"));
  }
  auto bytes = TargetBytes(target, *numbers);
  if (!bytes.ok()) return bytes.status();
  const int64_t size = static_cast<int64_t>(bytes->size()) / count;
  return ExampleTensors{.bytes = *std::move(bytes), .size = size, .dims = *dims};
}

}  // namespace tilewire::client
