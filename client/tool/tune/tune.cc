// SPDX-License-Identifier: Apache-2.0
//
// `tilewire tune`: makes a faster file of a model with the engine of this process; no server is
// asked.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "client/ending_signal.h"
#include "client/image.h"
#include "client/progress.h"
#include "client/tool/command.h"
#include "client/tool/model_place.h"
#include "client/tool/train_flags.h"
#include "client/tool/tune/tune_flags.h"
#include "client/training/model_fit.h"
#include "client/tuning/thumbnail.h"
#include "client/tuning/tuning_report.h"
#include "engine/engine.h"

namespace tilewire::client {
namespace {

constexpr char kTuneExamples[] =
    R"(  tilewire tune deploy/models/digits/1/model.onnx --shape=3x24x20 \
      --array=deploy/models/digits/heldout/images.u8 \
      --budget="top1_changed<=1%" --qdq=digits_int8.onnx
  tilewire tune models/resnet50/1/model.onnx --images=pictures \
      --torchvision=resnet50 --budget="top1_changed<=0.5%" --tuning \
      --html=tuning.html
  tilewire tune model.onnx --array=scores=a.npy --array=mask=b.npy \
      --budget="l2(result)<=1e-2" --time=20m --qdq=model_int8.onnx
  tilewire tune cats.onnx --folder=pictures --goal=2x --tuning
  tilewire tune cats.onnx --folder=pictures --budget="accuracy_drop<=0.5%" --tuning

Needs no server, and no labels: errors are differences from the model itself. With
--labels, or pictures in a folder per class, accuracy before and after is told, too, and
may be what the budget is of.
A few hundred inputs like those that will come are enough. Half of them choose the layers
that compute in 8-bit integers; the other half, which the choice has not seen, says
whether the budget is kept. --tuning writes tilewire.tuning beside the model, which
stays as it is: a server that loads the model applies it. With it, layers may also
multiply numbers of bf16, if the CPU can. --qdq writes an ONNX file with
QuantizeLinear and DequantizeLinear around the layers of int8, which other runtimes
take, too. Times are measured on this machine.

Ctrl-C (or SIGTERM) ends the choice: the best that was found so far is checked and
written, and the status is 130 (143 after SIGTERM, 129 after SIGHUP). A second one
ends the tool at once. Else it is 0, 1 if nothing keeps the budget or the writing
failed, 2 if flags, files or the model do not fit.)";

absl::StatusOr<TuningResult> TuneWithProgress(Engine* engine, const TuneFlags& flags,
                                              const TuningExamples& examples, TuningSpec spec) {
  Progress progress;
  spec.labels = examples.labels;
  spec.stop = &HasEndingSignal();
  spec.progress = [&](const TuningProgress& so_far) {
    progress.Show(so_far.fraction, ShownText(so_far.text));
  };
  return Tune(engine, flags.model, ViewsOf(examples.examples), spec);
}

// Says which file failed and why; returns the exit status.
int ReportNoResult(const std::string& model, const absl::Status& status) {
  Refuse(absl::Status(status.code(), absl::StrCat(model, ": ", status.message())));
  if (absl::IsCancelled(status)) {
    absl::FPrintF(stderr, "A signal ended the tuning before anything was found.\n");
    return StatusOfEndingSignal();
  }
  const bool is_of_files = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                           absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status);
  return is_of_files ? 2 : 1;
}

absl::Status WriteResult(const TuneFlags& flags, TuningReport* report) {
  if (!flags.qdq.empty()) {
    const absl::Status written = WriteTunedModel(report->result, Followed(flags.qdq));
    if (!written.ok()) return written;
    report->written.push_back(flags.qdq);
    report->has_qdq = true;
  }
  if (!flags.tuning) return absl::OkStatus();
  const std::string tuning = TuningFileOf(flags.model);
  const absl::Status written = WriteTuning(report->result, Followed(tuning));
  if (!written.ok()) return written;
  report->written.push_back(tuning);
  report->has_tuning = true;
  return absl::OkStatus();
}

// Names and small copies of the pictures whose answers changed, as far as reports show them.
void AddPictures(const TuningExamples& examples, TuningReport* report) {
  report->classes = examples.classes;
  if (examples.files.empty()) return;
  for (const ChangedAnswer& changed : report->result.changed) {
    if (report->pictures.size() == kMostChangedInHtml) break;
    ChangedPicture& picture = report->pictures[changed.example];
    picture.file = examples.files[changed.example];
    const auto bytes = ReadFile(picture.file);
    const auto image = bytes.ok() ? DecodeImage(*bytes) : bytes.status();
    if (image.ok()) picture.thumbnail = ThumbnailHtml(*image);  // else it went away meanwhile
  }
}

// Folders of classes are numbered as the model's are only where they are as many.
absl::Status CheckClasses(const TuningExamples& examples, const ModelSignature& signature,
                          const ErrorBudget& budget) {
  if (examples.classes.empty()) return absl::OkStatus();
  const auto index = OutputOf(signature, budget.output());
  if (!index.ok()) return index.status();
  const TensorSpec& output = signature.outputs[*index];
  const auto folders = static_cast<int64_t>(examples.classes.size());
  if (output.dims.size() < 2 || output.dims[1] < 0 || output.dims[1] == folders)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--folder has ", CountText(folders, "folder"), ", and the output '",
                   ShownText(output.name), "' ", output.dims[1],
                   " classes: each class needs its folder, so that folder and class have "
                   "the same number. --images takes the same pictures without classes"));
}

// Writes the files and the report; whether all of it could be.
bool WriteAll(const TuneFlags& flags, TuningReport* report) {
  absl::Status written = report->result.is_found() ? WriteResult(flags, report) : absl::OkStatus();
  // The result is told also where the disk is full.
  absl::PrintF("%s", flags.json ? TuningJson(*report) : TuningText(*report));
  std::fflush(stdout);  // before what follows on standard error
  if (!flags.html.empty()) {
    const absl::Status page = WriteFile(flags.html, TuningHtml(*report));
    if (written.ok()) written = page;
  }
  if (!written.ok()) Refuse(written);
  return written.ok();
}

int ConcludeTuning(const TuneFlags& flags, TuningReport report) {
  const bool is_written = WriteAll(flags, &report);
  const TuningResult& result = report.result;
  if (!result.is_found()) {
    absl::FPrintF(stderr, "tilewire: nothing %s; nothing was written\n",
                  ShownText(WantedText(report)));
  }
  if (IsSlower(report)) {
    absl::FPrintF(stderr,
                  "warning: what was found is not faster than the exact model on this machine\n");
  }
  if (!is_written) return 1;
  if (!result.is_stopped) return result.is_found() ? 0 : 1;
  absl::FPrintF(stderr, "tilewire: a signal ended the choice after %s\n",
                CountText(result.tried, "trial"));
  return StatusOfEndingSignal();
}

int RunTune(const CLI::App& command, const TuneFlags& flags) {
  const auto engine = Engine::Create({.threads = flags.threads});
  if (!engine.ok()) return Refuse(engine.status());
  const cpu::Isa isa = (*engine)->options().max_isa & cpu::BestIsa();
  const auto spec = TuningSpecOf(command, flags, isa.Includes(cpu::Isa::kAvx512Bf16));
  if (!spec.ok()) return Refuse(spec.status());
  auto model = (*engine)->LoadModel(flags.model, {.takes_tuning = false});
  if (!model.ok()) return ReportNoResult(flags.model, model.status());
  const auto examples = ReadTuningExamples(flags, (*model)->signature());
  if (!examples.ok()) return Refuse(examples.status());
  const absl::Status fit = CheckClasses(*examples, (*model)->signature(), spec->budget);
  if (!fit.ok()) return Refuse(fit);
  model->reset();  // Tune() loads it, too
  if (flags.is_made_up()) {
    absl::FPrintF(stderr,
                  "warning: no --images, no --folder and no --array: %d inputs are made up, and "
                  "ranges and errors say little about real ones\n",
                  flags.made_up);
  }
  CatchEndingSignals();
  auto result = TuneWithProgress(engine->get(), flags, *examples, *spec);
  if (!result.ok()) return ReportNoResult(flags.model, result.status());
  TuningReport report{.model = flags.model,
                      .settings = GivenFlags(command),
                      .budget = spec->budget,
                      .goal = spec->goal,
                      .has_budget = !flags.budget.empty(),
                      .is_made_up = flags.is_made_up(),
                      .result = *std::move(result)};
  AddPictures(*examples, &report);
  return ConcludeTuning(flags, std::move(report));
}

}  // namespace

void AddTuneCommand(CLI::App* app, int* exit_code) {
  CLI::App* command =
      app->add_subcommand("tune", "Make a faster file of a model, within a budget of error");
  command->footer(kTuneExamples);
  auto flags = std::make_shared<TuneFlags>();
  AddTuneOptions(command, flags.get());
  command->callback([=] {
    flags->normalizes =
        command->count("--scale") + command->count("--mean") + command->count("--std") > 0;
    *exit_code = RunTune(*command, *flags);
  });
}

}  // namespace tilewire::client
