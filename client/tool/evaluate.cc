// SPDX-License-Identifier: Apache-2.0
//
// `tilewire evaluate`: a labelled set of examples through a model. Pictures are sent in both
// layouts where its input has two, which must give the same bits.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/amount_text.h"
#include "client/image.h"
#include "client/latencies.h"
#include "client/picture_input.h"
#include "client/progress.h"
#include "client/scores.h"
#include "client/tool/command.h"
#include "client/tool/evaluation_set.h"

namespace tilewire::client {
namespace {

constexpr char kEvaluateExamples[] =
    R"(Sends the pictures one by one, in both layouts if the model's input is [N,C,H,W], else as
it is declared: [N,H,W,C], [C,H,W] or [H,W,C]. Other examples than pictures of bytes are
sent as they are: numbers of --shape in .f32, .s32, .s64 or .u8, or a .npy file. The exit
status is 0 if the accuracy is reached and both layouts agree bit for bit on all outputs.

  tilewire evaluate --model=digits --images=heldout/images.u8 --labels=heldout/labels.u8 \
      --shape=3x24x20 --min_accuracy=0.98 --show=4
  tilewire evaluate --model=irises --images=x.npy --labels=y.npy)";

struct EvaluateFlags {
  std::string model, images, labels, shape;
  double min_accuracy = 0, timeout_s = 60;
  int64_t show = 0;
  Normalization normalization;
  bool normalizes = false;  // --scale, --mean or --std was given
};

struct Evaluation {
  int64_t right = 0, done = 0, different = 0;
  int64_t requests_differ = 0;  // pictures whose bytes on the wire differed between the layouts
  std::string only_shape;       // of the input as it is declared, where it has one layout
  std::string first_difference;
  Latencies latencies;
  absl::Duration elapsed;
  std::vector<int> answers;
};

// An nhwc answer's bytes put in nchw order (elements of 4 bytes).
std::string ToNchw(const Tensor& tensor) {
  if (tensor.layout == Layout::kNchw || tensor.shape.size() < 3) return tensor.bytes;
  const int64_t channels = tensor.shape.back();
  int64_t spatial = 1;
  for (size_t i = 1; i + 1 < tensor.shape.size(); ++i) spatial *= tensor.shape[i];
  std::string bytes(tensor.bytes.size(), '\0');
  const int64_t elements = tensor.bytes.size() / 4;
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t c = i % channels, s = i / channels % spatial, n = i / channels / spatial;
    std::memcpy(&bytes[((n * channels + c) * spatial + s) * 4], &tensor.bytes[i * 4], 4);
  }
  return bytes;
}

// Empty, or the name of the output that differs.
std::string CompareLayouts(const Result& nchw, const Result& nhwc) {
  if (nchw.outputs.size() != nhwc.outputs.size()) return "(another number of outputs)";
  for (size_t i = 0; i < nchw.outputs.size(); ++i) {
    if (nchw.outputs[i].bytes != ToNchw(nhwc.outputs[i])) return nchw.outputs[i].name;
  }
  return "";
}

absl::StatusOr<Result> AskOne(Client* client, const ModelMetadata& metadata, Tensor tensor,
                              const EvaluateFlags& flags, Evaluation* evaluation) {
  InferOptions options;
  options.outputs = AllOutputs(metadata, tensor.layout);
  options.deadline = absl::Seconds(flags.timeout_s);
  const absl::Time start = absl::Now();
  auto result = client->Infer(flags.model, {std::move(tensor)}, options);
  evaluation->latencies.Add(absl::Now() - start);
  return result;
}

absl::StatusOr<Result> AskPicture(Client* client, const ModelMetadata& metadata, const Image& image,
                                  PictureInput input, const EvaluateFlags& flags, std::string* sent,
                                  Evaluation* evaluation) {
  Tensor& tensor = input.tensor;
  auto bytes = ToInput(image, tensor.datatype, input.samples, flags.normalization);
  if (!bytes.ok()) return bytes.status();
  tensor.bytes = *sent = *std::move(bytes);
  return AskOne(client, metadata, std::move(tensor), flags, evaluation);
}

// Asks in nhwc too, and holds the answer against `nchw`, that of the bytes `sent`.
absl::Status CompareWithNhwc(Client* client, const ModelMetadata& metadata, const Image& image,
                             const EvaluateFlags& flags, const Result& nchw,
                             const std::string& sent, Evaluation* evaluation) {
  auto input =
      InputOfPicture(metadata.inputs[0], image.channels, image.height, image.width, Layout::kNhwc);
  if (!input.ok()) return input.status();
  std::string other;
  auto nhwc = AskPicture(client, metadata, image, *std::move(input), flags, &other, evaluation);
  if (!nhwc.ok()) return nhwc.status();
  if (sent != other) ++evaluation->requests_differ;
  const std::string output = CompareLayouts(nchw, *nhwc);
  if (output.empty()) return absl::OkStatus();
  ++evaluation->different;
  if (evaluation->first_difference.empty()) {
    evaluation->first_difference =
        absl::StrCat("picture ", evaluation->done, ", output '", ShownText(output), "'");
  }
  return absl::OkStatus();
}

// Notes the class of the answer, and whether it is right.
absl::Status NoteAnswer(const Result& answer, int64_t label, Evaluation* evaluation) {
  if (answer.outputs.empty()) return absl::InternalError("the server answered without outputs");
  auto scores = answer.outputs[0].Floats();
  if (!scores.ok()) return scores.status();
  const std::vector<int> best = TopK(*scores, 1);
  evaluation->answers.push_back(best.empty() ? -1 : best[0]);
  if (evaluation->answers.back() == label) ++evaluation->right;
  return absl::OkStatus();
}

absl::Status EvaluateArray(Client* client, const ModelMetadata& metadata, const EvaluationSet& set,
                           int64_t index, const EvaluateFlags& flags, Evaluation* evaluation) {
  evaluation->only_shape = ShapeText(set.TensorAt(index).shape);
  auto answer = AskOne(client, metadata, set.TensorAt(index), flags, evaluation);
  return answer.ok() ? NoteAnswer(*answer, set.label(index), evaluation) : answer.status();
}

absl::Status EvaluatePicture(Client* client, const ModelMetadata& metadata,
                             const EvaluationSet& set, int64_t index, const EvaluateFlags& flags,
                             Evaluation* evaluation) {
  const Image image = set.PictureAt(index);
  auto input =
      InputOfPicture(metadata.inputs[0], image.channels, image.height, image.width, Layout::kNchw);
  if (!input.ok()) return input.status();
  const bool has_both = HasBothLayouts(*input);
  if (!has_both) evaluation->only_shape = ShapeText(input->tensor.shape);
  std::string sent;
  auto answer = AskPicture(client, metadata, image, *std::move(input), flags, &sent, evaluation);
  if (!answer.ok()) return answer.status();
  const absl::Status noted = NoteAnswer(*answer, set.label(index), evaluation);
  if (!noted.ok() || !has_both) return noted;
  return CompareWithNhwc(client, metadata, image, flags, *answer, sent, evaluation);
}

std::string LabelText(const std::vector<std::string>& labels, int index) {
  return index >= 0 && index < static_cast<int>(labels.size()) ? ShownText(labels[index])
                                                               : absl::StrCat(index);
}

void ShowExamples(const EvaluationSet& set, const ModelMetadata& metadata,
                  const Evaluation& evaluation, int64_t show) {
  const std::vector<std::string> labels = metadata.Labels();
  for (int64_t i = 0; i < std::min(show, set.count()); ++i) {
    absl::PrintF("\n%s %d: answer %s, label %s\n%s", set.are_pictures() ? "Picture" : "Example", i,
                 LabelText(labels, evaluation.answers[i]),
                 LabelText(labels, static_cast<int>(set.label(i))),
                 set.are_pictures() ? TextPicture(set.PictureAt(i)) : "");
  }
}

std::string LayoutsText(const Evaluation& evaluation) {
  if (!evaluation.only_shape.empty())
    return absl::StrCat("the one that the input is declared in, ", evaluation.only_shape);
  return absl::StrCat("nchw and nhwc, ", evaluation.requests_differ, " of ", evaluation.done,
                      " requests differ in bytes; ",
                      evaluation.different == 0
                          ? "all outputs agree bit for bit"
                          : absl::StrCat(evaluation.different, " answers differ, first ",
                                         evaluation.first_difference));
}

// Prints the figures; 0 if they are good enough.
int Judge(const Evaluation& evaluation, const EvaluateFlags& flags) {
  const double accuracy = static_cast<double>(evaluation.right) / evaluation.done;
  absl::PrintF("\naccuracy    %.4f (%d of %d), at least %.4f wanted\n", accuracy, evaluation.right,
               evaluation.done, flags.min_accuracy);
  absl::PrintF("layouts     %s\n", LayoutsText(evaluation));
  absl::PrintF("latency     %s\n", evaluation.latencies.ToString());
  absl::PrintF("throughput  %.1f requests/s, one at a time\n",
               evaluation.latencies.count() / absl::ToDoubleSeconds(evaluation.elapsed));
  if (accuracy >= flags.min_accuracy && evaluation.different == 0) return 0;
  absl::FPrintF(stderr, "tilewire: %s\n",
                evaluation.different > 0 ? "the two layouts do not give the same bits"
                                         : "the accuracy is too low");
  return 1;
}

// All examples, one by one.
absl::StatusOr<Evaluation> EvaluateAll(Client* client, const ModelMetadata& metadata,
                                       const EvaluationSet& set, const EvaluateFlags& flags) {
  Evaluation evaluation;
  const absl::Time start = absl::Now();
  Progress progress;
  for (int64_t i = 0; i < set.count(); ++i) {
    const absl::Status status = set.are_pictures()
                                    ? EvaluatePicture(client, metadata, set, i, flags, &evaluation)
                                    : EvaluateArray(client, metadata, set, i, flags, &evaluation);
    if (!status.ok()) return status;
    ++evaluation.done;
    progress.Show(static_cast<double>(i + 1) / set.count(),
                  absl::StrFormat("%d of %d", i + 1, set.count()));
  }
  evaluation.elapsed = absl::Now() - start;
  return evaluation;
}

int RunEvaluate(const Server& server, const EvaluateFlags& flags) {
  auto set = EvaluationSet::Read(flags.images, flags.labels, flags.shape);
  if (!set.ok()) {
    absl::FPrintF(stderr, "tilewire: %s\n`tilewire evaluate --help` describes the files.\n",
                  set.status().message());
    return 2;
  }
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  auto metadata = (*client)->Metadata(flags.model);
  if (!metadata.ok()) return Report(metadata.status());
  if (metadata->inputs.size() != 1) {
    return Report(absl::InvalidArgumentError(absl::StrCat(
        "model '", flags.model, "' has ", metadata->inputs.size(), " inputs; one is needed")));
  }
  if (!set->are_pictures()) {
    const absl::Status fits =
        set->FitArrays(metadata->inputs[0], flags.normalization, flags.normalizes);
    if (!fits.ok()) return Refuse(fits);
  }
  const auto evaluation = EvaluateAll(client->get(), *metadata, *set, flags);
  if (!evaluation.ok()) return Report(evaluation.status());
  ShowExamples(*set, *metadata, *evaluation, flags.show);
  return Judge(*evaluation, flags);
}

}  // namespace

void AddEvaluateCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "evaluate", "Classify labelled examples; pictures in both layouts if there are two");
  command->footer(kEvaluateExamples);
  auto flags = std::make_shared<EvaluateFlags>();
  command->add_option("--model", flags->model, "its first output gives the scores")->required();
  command
      ->add_option(
          "--images", flags->images,
          "file of examples [count, ...]: bytes [C, H, W] without a header, or .f32, .s32, .s64 "
          "or .npy")
      ->required()
      ->check(CLI::ExistingFile);
  command
      ->add_option("--labels", flags->labels,
                   "the right class of each: a byte, or .s32, .s64 or .npy")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--shape", flags->shape,
                      "of one example without a header, CxHxW of pictures");
  command->add_option("--min_accuracy", flags->min_accuracy, "share of right answers to reach")
      ->check(Between(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--show", flags->show, "examples to print, pictures as text")
      ->check(CLI::Range(0, 1000000));
  AddNormalizationOptions(command, &flags->normalization);
  command->add_option("--timeout", flags->timeout_s, "seconds for one answer")
      ->check(Between(0.001, 1e6));
  command->callback([=, &server] {
    flags->normalizes =
        command->count("--scale") + command->count("--mean") + command->count("--std") > 0;
    *exit_code = RunEvaluate(server, *flags);
  });
}

}  // namespace tilewire::client
