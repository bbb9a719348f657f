// SPDX-License-Identifier: Apache-2.0
//
// `tilewire infer`: files in, the best classes or raw outputs back.
#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/amount_text.h"
#include "client/latencies.h"
#include "client/npy.h"
#include "client/scores.h"
#include "client/tensor_values.h"
#include "client/tool/command.h"
#include "client/tool/picture_options.h"

namespace tilewire::client {
namespace {

constexpr char kInferExamples[] =
    R"(Pictures are PGM, PPM, PNG or JPEG; they are resized and cropped to the model's size.

  tilewire infer --model=digits --top=3 digit.png
  tilewire infer --model=resnet50 --torchvision=resnet50 --softmax cat.jpg
  tilewire infer --model=cats --mean 0.485 0.456 0.406 --std 0.229 0.224 0.225 cat.jpg
  tilewire infer --model=digits --raw --layout=nhwc --output=features=map.raw tensor.raw)";

struct InferFlags {
  std::string model, version, layout = "nchw", shape, score_output;
  std::vector<std::string> files, saves;
  int top = 5;
  int64_t free_size = 224;
  double timeout_s = 60;
  bool softmax = false, raw = false;
  PictureOptions pictures;
};

absl::StatusOr<Tensor> FromPicture(const std::string& file, const TensorMetadata& input,
                                   const InferFlags& flags) {
  absl::StatusOr<PictureInput> one =
      PictureInputOf(input, /*batch=*/1, flags.free_size, ParseLayout(flags.layout));
  if (one.ok() && one->pictures != 1) {
    one = absl::InvalidArgumentError(
        absl::StrCat("input '", input.name, "' takes ", one->pictures, " pictures in one request"));
  }
  if (!one.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(one.status().message(), ": give raw tensor files with --raw"));
  }
  auto bytes = ReadPicture(file, input, *one, flags.pictures);
  if (!bytes.ok()) return bytes.status();
  one->tensor.bytes = *std::move(bytes);
  return std::move(one->tensor);
}

absl::StatusOr<Tensor> FromRawFile(const std::string& file, const TensorMetadata& input,
                                   const InferFlags& flags) {
  Tensor tensor;
  tensor.name = input.name;
  tensor.datatype = input.datatype;
  tensor.shape = ClosedShape(input, /*batch=*/1, flags.free_size);
  auto bytes = ReadFile(file);
  if (!bytes.ok()) return bytes.status();
  tensor.bytes = *std::move(bytes);
  if (!input.shape.empty() && input.shape.front() < 0) {
    // As many rows as the file holds, if the size of an element is known.
    int64_t row = SizeOfDatatype(input.datatype);
    for (size_t i = 1; i < tensor.shape.size(); ++i) row *= tensor.shape[i];
    if (row > 0 && !tensor.bytes.empty())
      tensor.shape[0] = std::max<int64_t>(1, tensor.bytes.size() / row);
  }
  if (flags.layout == "nhwc" && tensor.shape.size() >= 3) {
    tensor.layout = Layout::kNhwc;
    std::rotate(tensor.shape.begin() + 1, tensor.shape.begin() + 2, tensor.shape.end());
  }
  return tensor;
}

// One input from one file.
absl::StatusOr<Tensor> MakeInput(const std::string& file, const TensorMetadata& input,
                                 const InferFlags& flags) {
  return flags.raw ? FromRawFile(file, input, flags) : FromPicture(file, input, flags);
}

// Scores have one dimension beside the batch; others, such as maps of segments, are not ranked.
bool HoldsScores(const Tensor& output) {
  int dims = 0;
  for (size_t i = 1; i < output.shape.size(); ++i) dims += output.shape[i] > 1 ? 1 : 0;
  return dims <= 1;
}

int64_t RowsOf(const Tensor& output) {
  return output.shape.empty() ? 1 : std::max<int64_t>(1, output.shape[0]);
}

std::string LabelOf(const std::vector<std::string>& labels, int64_t index) {
  return index >= 0 && index < static_cast<int64_t>(labels.size()) ? ShownText(labels[index]) : "";
}

absl::Status PrintRange(const Tensor& output) {
  const auto values = NumbersOf(output);
  if (!values.ok()) return values.status();
  absl::PrintF("  %s: %s %s %s", ShownText(output.name), ShownText(output.datatype),
               ShapeText(output.shape), LayoutName(output.layout));
  if (!values->empty()) {
    const auto [least, most] = std::minmax_element(values->begin(), values->end());
    absl::PrintF(", from %.5g to %.5g", *least, *most);
  }
  absl::PrintF("; these are not scores of classes: --output=%s=FILE writes them\n",
               ShownText(output.name));
  return absl::OkStatus();
}

absl::Status PrintTop(const Tensor& output, const std::vector<std::string>& labels,
                      const InferFlags& flags) {
  const auto scores = NumbersOf(output);
  if (!scores.ok()) return scores.status();
  const int64_t rows = output.shape.size() >= 2 ? RowsOf(output) : 1;
  const int64_t classes = static_cast<int64_t>(scores->size()) / rows;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<float> values(scores->begin() + row * classes,
                              scores->begin() + (row + 1) * classes);
    if (flags.softmax) values = SoftmaxOf(values);
    for (const int index : TopK(values, flags.top))
      absl::PrintF("  %10.5g  %5d  %s\n", values[index], index, LabelOf(labels, index));
    if (row + 1 < rows) absl::PrintF("\n");
  }
  return absl::OkStatus();
}

// Integers, such as the class that an ArgMax chose: a line for each row of the batch.
absl::Status PrintIntegers(const Tensor& output, const std::vector<std::string>& labels) {
  constexpr int64_t kMostPerRow = 16;
  const int64_t rows = RowsOf(output);
  const auto texts = TextsOf(output, kMostPerRow * rows + 1);
  if (!texts.ok()) return texts.status();
  const int64_t each = static_cast<int64_t>(texts->size()) / rows;
  if (each > kMostPerRow || each * rows < static_cast<int64_t>(texts->size()))
    return PrintRange(output);
  absl::PrintF("  %s: %s %s\n", ShownText(output.name), ShownText(output.datatype),
               ShapeText(output.shape));
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = texts->begin() + row * each;
    int64_t index;
    const bool is_class = each == 1 && absl::SimpleAtoi(*first, &index);
    absl::PrintF("  %s  %s\n", absl::StrJoin(first, first + each, " "),
                 is_class ? LabelOf(labels, index) : "");
  }
  return absl::OkStatus();
}

absl::Status PrintOutput(const Tensor& output, const std::vector<std::string>& labels,
                         const InferFlags& flags) {
  if (!IsFloatingPoint(output.datatype)) return PrintIntegers(output, labels);
  return HoldsScores(output) ? PrintTop(output, labels, flags) : PrintRange(output);
}

// "--output=features=FILE": the raw bytes of that output.
absl::Status SaveOutputs(const Result& result, const InferFlags& flags) {
  for (const std::string& save : flags.saves) {
    const size_t equals = save.find('=');
    const std::string name = save.substr(0, equals);
    const Tensor* output = result.Find(name);
    if (output == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("the model has no output '", name, "'"));
    const std::string path =
        equals == std::string::npos ? absl::StrCat(name, ".raw") : save.substr(equals + 1);
    if (absl::Status status = WriteFile(path, output->bytes); !status.ok()) return status;
    absl::PrintF("  %s: %s %s %s, row-major, written to %s\n", name, ShownText(output->datatype),
                 ShapeText(output->shape), LayoutName(output->layout), path);
  }
  return absl::OkStatus();
}

int InferRow(Client* client, const ModelMetadata& metadata, const std::vector<std::string>& files,
             const InferFlags& flags) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < files.size(); ++i) {
    auto tensor = MakeInput(files[i], metadata.inputs[i], flags);
    if (!tensor.ok()) return Refuse(tensor.status());
    inputs.push_back(*std::move(tensor));
  }
  InferOptions options;
  options.version = flags.version;
  options.deadline = absl::Seconds(flags.timeout_s);
  options.outputs = AllOutputs(metadata, ParseLayout(flags.layout));
  const absl::Time sent = absl::Now();
  auto result = client->Infer(flags.model, inputs, options);
  if (!result.ok()) return Report(result.status());
  absl::PrintF("%s  (%s)\n", files.front(), LatencyText(absl::Now() - sent));
  const std::string& name =
      flags.score_output.empty() ? metadata.outputs.front().name : flags.score_output;
  const Tensor* scores = result->Find(name);
  if (scores == nullptr)
    return Report(absl::InvalidArgumentError(absl::StrCat("the model has no output '", name, "'")));
  const absl::Status printed = PrintOutput(*scores, metadata.Labels(), flags);
  if (!printed.ok()) return Report(printed);
  const absl::Status saved = SaveOutputs(*result, flags);
  return saved.ok() ? 0 : Refuse(saved);
}

int RunInfer(const Server& server, const InferFlags& flags) {
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  auto metadata = (*client)->Metadata(flags.model, flags.version);
  if (!metadata.ok()) return Report(metadata.status());
  const size_t inputs = metadata->inputs.size();
  if (inputs == 0 || metadata->outputs.empty() || flags.files.size() % inputs != 0) {
    return Report(absl::InvalidArgumentError(
        absl::StrCat("model '", flags.model, "' takes ", inputs, " inputs a request; ",
                     flags.files.size(), " files were given")));
  }
  for (size_t i = 0; i < flags.files.size(); i += inputs) {
    const std::vector<std::string> files(flags.files.begin() + i, flags.files.begin() + i + inputs);
    if (const int exit_code = InferRow(client->get(), *metadata, files, flags); exit_code != 0)
      return exit_code;
  }
  return 0;
}

void AddPictureOptions(CLI::App* command, InferFlags* flags) {
  AddPreparationOptions(command, &flags->pictures);
  command
      ->add_option("--free_size", flags->free_size,
                   "height and width where the model leaves them open")
      ->check(AtLeastOne())
      ->capture_default_str();
}

}  // namespace

void AddInferCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command = app->add_subcommand("infer", "Run a model on pictures or raw tensor files");
  command->footer(kInferExamples);
  auto flags = std::make_shared<InferFlags>();
  command->add_option("files", flags->files, "one file per input; more files are further requests")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--model", flags->model, "the model to call")->required();
  command->add_option("--model_version", flags->version, "by default the highest");
  command->add_flag("--raw", flags->raw,
                    "files hold row-major, little-endian tensors in --layout, not pictures");
  command->add_option("--layout", flags->layout, "in which inputs are sent and outputs answered")
      ->check(CLI::IsMember({"nchw", "nhwc"}))
      ->capture_default_str();
  command->add_option("--top", flags->top, "how many classes to print")
      ->check(AtLeastOne())
      ->capture_default_str();
  command->add_flag("--softmax", flags->softmax,
                    "print probabilities of what the model gives as logits");
  command->add_option("--scores", flags->score_output,
                      "the output that holds the scores; by default the first");
  command->add_option("--output", flags->saves,
                      "NAME or NAME=FILE: write this output's raw bytes there [NAME.raw]");
  AddPictureOptions(command, flags.get());
  command->add_option("--timeout", flags->timeout_s, "seconds for an answer")
      ->check(Between(0.001, 1e6))
      ->capture_default_str();
  command->callback([=, &server] { *exit_code = RunInfer(server, *flags); });
}

}  // namespace tilewire::client
