// SPDX-License-Identifier: Apache-2.0
//
// `tilewire train`: trains an ONNX file with the engine of this process; no server is asked.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/amount_text.h"
#include "client/ending_signal.h"
#include "client/progress.h"
#include "client/tool/command.h"
#include "client/tool/model_place.h"
#include "client/tool/train_flags.h"
#include "client/training/example_order.h"
#include "client/training/learned_file.h"
#include "client/training/model_fit.h"
#include "client/training/reserved_space.h"
#include "client/training/training_report.h"
#include "client/training/training_run.h"
#include "engine/engine.h"
#include "engine/onnx/training_refusal.h"

namespace tilewire::client {
namespace {

constexpr char kTrainExamples[] =
    R"(  tilewire train deploy/models/digits/1/model.onnx --shape=3x24x20 \
      --images=deploy/models/digits/heldout/images.u8 \
      --labels=deploy/models/digits/heldout/labels.u8 \
      --epochs=10 --lr=0.01 --hold_out=0.1 -o trained.onnx
  tilewire train resnet50.onnx --folder=pictures --torchvision=resnet50 \
      --only='fc.*' --epochs=20 --optimizer=adam -o parts.onnx
  tilewire train model.onnx --images=x.npy --labels=y.npy --loss=mse \
      --schedule=cosine --warm_up=100 --html=loss.html -o better.onnx

Needs no server. The file that is written is the model with other parameters:
a server takes it in the place of the old one. Parameters are the floating-point
initializers that the loss depends on; --only and --freeze choose among them.
A network with several heads is trained by all of them with --add_loss.
Bytes become floats by (byte * scale - mean) / std, as they do in `evaluate`.

The same file, flags, examples and instruction set give the same bits, with any
number of threads. An update whose loss or gradient is not finite is skipped and
changes nothing; ten of them in a row end the training, and no model is written,
nor where the last half of the updates were skipped or the held-out loss is lost.

Ctrl-C (or SIGTERM, or SIGHUP where it is not ignored) ends the training: what
was learned so far is written, and the status is 130 (143, 129). A second one
ends the tool at once. Else it is 0, 1 if the training or the writing failed, 2
if flags, files or the model do not fit. To go on, train the file that was
written: optimizer and schedule begin anew.)";

struct OpenTrainer {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Trainer> trainer;
};

absl::StatusOr<OpenTrainer> CreateTrainerOf(const TrainFlags& flags, int64_t updates_of_epoch) {
  auto engine = Engine::Create({.threads = flags.threads});
  if (!engine.ok()) return engine.status();
  auto trainer = CreateTrainer(engine->get(), flags.model, SpecOf(flags, updates_of_epoch));
  if (!trainer.ok()) return trainer.status();
  return OpenTrainer{*std::move(engine), *std::move(trainer)};
}

// The flag that a message of the engine is about; empty if none is.
std::string FlagOf(absl::string_view message, const TrainFlags& flags) {
  const auto is_about = [&](const std::string& value) {
    return absl::StrContains(message, absl::StrCat("'", value, "'"));
  };
  if (!flags.loss_output.empty() && is_about(flags.loss_output))
    return absl::StrCat("--loss_output=", flags.loss_output);
  const auto losses = LossesOf(flags).value();
  for (size_t i = 1; i < losses.size(); ++i) {
    if (is_about(losses[i].output)) return absl::StrCat("--add_loss=", flags.added_losses[i - 1]);
  }
  for (const std::string& pattern : flags.only) {
    if (is_about(pattern)) return absl::StrCat("--only=", pattern);
  }
  for (const std::string& pattern : flags.freeze) {
    if (is_about(pattern)) return absl::StrCat("--freeze=", pattern);
  }
  return "";
}

// Reports why no trainer could be made, in terms of the flags. Returns the exit status.
int ReportNoTrainer(const absl::Status& status, const TrainFlags& flags) {
  absl::string_view message = status.message();
  std::string flag = FlagOf(message, flags);
  if (absl::ConsumePrefix(&message, "class_weights: ")) flag = "--class_weights";
  if (const size_t named = message.find("' matches no parameter"); named != message.npos)
    message.remove_prefix(named + 2);
  Refuse(
      absl::Status(status.code(), absl::StrCat(flag.empty() ? flags.model : flag, ": ", message)));
  if (absl::StartsWith(flag, "--only") || absl::StartsWith(flag, "--freeze")) {
    absl::FPrintF(stderr, "In names * stands for any characters: 'fc.*' begins with \"fc.\".\n");
  }
  if (absl::IsUnimplemented(status)) {
    absl::FPrintF(stderr,
                  "Operations before the first parameter that is trained need no gradient: "
                  "--only trains the last ones alone.\n");
  }
  const bool is_unfit =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsUnimplemented(status);
  return is_unfit ? 2 : 1;
}

// A note where classes of the output have no folder; else empty.
std::string FoldersText(const TrainFlags& flags, const ClassFolder& folder,
                        const TensorSpec& output) {
  const int64_t given = static_cast<int64_t>(folder.classes.size());
  const int64_t classes = output.dims.size() >= 2 ? output.dims[1] : -1;
  if (given == 0 || given >= classes) return "";
  return absl::StrFormat("note: --folder=%s has %s; no example is of the other %d of %d\n",
                         ShownText(flags.folder), CountText(given, "class folder"), classes - given,
                         classes);
}

// A note where an update has one example: its gradient is that of a single one.
std::string SingleText(const TrainFlags& flags, const Trainer& trainer) {
  if (flags.batch > 1) return "";
  const Dims& dims = trainer.signature().inputs[0].dims;
  const bool is_fixed = !dims.empty() && dims[0] == 1;
  return absl::StrCat("note: every update has one example, whose gradient is a rough guess",
                      is_fixed ? "; an export with an open batch dimension takes more\n"
                               : ": a larger --batch or a smaller --lr makes up for it\n");
}

// A note where the rate does not come to what was asked for.
std::string WarmUpText(const TrainFlags& flags, int64_t updates) {
  if (flags.warm_up == 0 || flags.warm_up < updates) return "";
  return absl::StrFormat(
      "note: --warm_up=%d is all of the training, which has %s: the rate only rises\n",
      flags.warm_up, CountText(updates, "update"));
}

std::string StartText(const TrainFlags& flags, const Trainer& trainer, const ExampleOrder& order,
                      const ClassFolder& folder, const JudgedOutput& judged) {
  int64_t frozen = 0, elements = 0;
  for (const ParameterSpec& parameter : trainer.parameters()) {
    frozen += parameter.frozen ? 1 : 0;
    elements += parameter.frozen ? 0 : ElementCount(parameter.dims).value_or(0);
  }
  const int64_t trained = static_cast<int64_t>(trainer.parameters().size()) - frozen;
  std::string text =
      absl::StrFormat("%s: trains %d elements of %s, %d frozen; %s, %d held out\n",
                      ShownText(flags.model), elements, CountText(trained, "parameter"), frozen,
                      CountText(order.trained_count(), "example"), order.held_out().size());
  for (size_t i = 0; i < folder.classes.size(); ++i)
    absl::StrAppend(&text, "class ", i, ": ", ShownText(folder.classes[i]), "\n");
  absl::StrAppend(&text, FoldersText(flags, folder, trainer.signature().outputs[judged.index]));
  absl::StrAppend(&text, SingleText(flags, trainer));
  absl::StrAppend(
      &text, WarmUpText(flags, flags.epochs * UpdatesOfEpoch(order.trained_count(), flags.batch)));
  for (const TrainingNote& note : trainer.notes())
    absl::StrAppend(&text, "note: ", ShownText(note.text), "\n");
  return text;
}

std::vector<std::string> TextsOf(const std::vector<TrainingNote>& notes) {
  std::vector<std::string> texts;
  for (const TrainingNote& note : notes) texts.push_back(note.text);
  return texts;
}

RunSettings RunSettingsOf(const TrainFlags& flags, const FittedExamples& examples) {
  return {.epochs = flags.epochs,
          .batch = flags.batch,
          .judged = examples.judged,
          .sources = SourcesOf(flags),
          .recalibrates = flags.recalibrates,
          .stop = &HasEndingSignal()};
}

TrainingRecord TrainWithProgress(const TrainFlags& flags, Trainer* trainer,
                                 const FittedExamples& examples, const ExampleOrder& order) {
  Progress progress;
  const TrainingEvents events = {
      .updated =
          [&](const TrainingRecord& so_far) {
            progress.Show(static_cast<double>(so_far.updates()) /
                              static_cast<double>(flags.epochs * so_far.updates_of_epoch),
                          TrainingProgressText(so_far, flags.epochs));
          },
      .epoch_ended = [&](const EpochFigures& figures) { progress.Note(EpochText(figures)); }};
  return RunTraining(trainer, examples.dataset, order, RunSettingsOf(flags, examples), events);
}

// Refuses what the run would find out in its midst or at its end. Returns the exit status.
int RefuseRun(const absl::Status& status, const TrainFlags& flags) {
  Refuse(status);
  switch (RefusalOf(status)) {
    case TrainingRefusal::kNoVariance:
      absl::FPrintF(stderr, "%s\n",
                    flags.batch == 1
                        ? "Give a larger --batch, or --frozen_statistics."
                        : "Another --batch leaves another number of examples to the last update of "
                          "an epoch; --frozen_statistics normalizes by those of the file.");
      break;
    case TrainingRefusal::kNoStatistics:
      absl::FPrintF(stderr, "Leave --recalibrate out.\n");
      break;
    case TrainingRefusal::kOther:
      break;
  }
  return absl::IsResourceExhausted(status) ? 1 : 2;
}

// Prints the report, and writes it as a page. Returns the exit status.
int PrintReport(const TrainFlags& flags, const TrainingReport& report) {
  if (flags.json) {
    absl::PrintF("%s", TrainingJson(report));
  } else if (report.failure.ok()) {
    absl::PrintF("%s", TrainingText(report));
  }
  std::fflush(stdout);  // before what follows on standard error
  if (flags.html.empty()) return 0;
  const absl::Status written = WriteFile(flags.html, TrainingHtml(report));
  return written.ok() ? 0 : (Refuse(written), 1);
}

int ReportFailure(const TrainFlags& flags, const TrainingReport& report) {
  Refuse(report.failure);
  absl::FPrintF(stderr, "%s\n",
                report.written.empty()
                    ? "No model was written."
                    : absl::StrCat("What was learned is in ", ShownText(report.written)));
  PrintReport(flags, report);
  return 1;
}

// Writes and prints what came of it.
int ConcludeTraining(const TrainFlags& flags, const Trainer& trainer, ReservedSpace space,
                     TrainingReport report) {
  space.GiveBack();
  const LearnedFile learned = WriteLearned(trainer, report.record, Followed(flags.output));
  report.failure = learned.failure;
  report.written = learned.path.empty() || !learned.failure.ok() ? learned.path : flags.output;
  if (!report.failure.ok()) return ReportFailure(flags, report);
  if (const int status = PrintReport(flags, report); status != 0) return status;
  if (!report.record.is_stopped) return 0;
  absl::FPrintF(stderr, "tilewire: a signal ended the training after update %d of %d; %s\n",
                report.record.updates(), flags.epochs * report.record.updates_of_epoch,
                report.written.empty()
                    ? "nothing was written"
                    : absl::StrCat(ShownText(report.written), " has what was learned by then"));
  return StatusOfEndingSignal();
}

// The place that the model is written to at the end: whether it can be, and room for it.
absl::StatusOr<ReservedSpace> TakePlace(const TrainFlags& flags, const Trainer& trainer) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error of writing it
  const std::string path = Followed(flags.output);
  const auto with_flag = [&](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat("--output=", flags.output, ": ", status.message()));
  };
  if (absl::Status place = trainer.CheckPlaces(path); !place.ok()) return with_flag(place);
  auto space = ReservedSpace::Take(path, trainer.written_bytes());
  if (!space.ok()) return with_flag(space.status());
  return space;
}

int Train(const CLI::App& command, const TrainFlags& flags) {
  if (absl::Status status = CheckTrainFlags(command, flags); !status.ok()) return Refuse(status);
  auto files = FindExamples(flags);
  if (!files.ok()) return Refuse(files.status());
  const auto order = ExampleOrder::Create(files->count, flags.hold_out, flags.seed);
  if (!order.ok()) return Refuse(order.status());
  const auto opened = CreateTrainerOf(flags, UpdatesOfEpoch(order->trained_count(), flags.batch));
  if (!opened.ok()) return ReportNoTrainer(opened.status(), flags);
  Trainer& trainer = *opened->trainer;
  auto space = TakePlace(flags, trainer);
  if (!space.ok()) return RefuseRun(space.status(), flags);
  const ClassFolder folder = files->folder;
  const auto examples = ReadExamples(flags, *std::move(files), order->trained_count(), trainer);
  if (!examples.ok()) return Refuse(examples.status());
  const absl::Status prepared =
      PrepareTraining(&trainer, examples->dataset, *order, RunSettingsOf(flags, *examples));
  if (!prepared.ok()) return RefuseRun(prepared, flags);
  absl::FPrintF(stderr, "%s", StartText(flags, trainer, *order, folder, examples->judged));
  CatchEndingSignals();
  TrainingRecord record = TrainWithProgress(flags, &trainer, *examples, *order);
  return ConcludeTraining(flags, trainer, *std::move(space),
                          {.model = flags.model,
                           .settings = GivenFlags(command),
                           .notes = TextsOf(trainer.notes()),
                           .parameters = trainer.parameters(),
                           .classes = folder.classes,
                           .epochs = flags.epochs,
                           .record = std::move(record)});
}

}  // namespace

void AddTrainCommand(CLI::App* app, int* exit_code) {
  CLI::App* command = app->add_subcommand("train", "Train an ONNX file; needs no server");
  command->footer(kTrainExamples);
  auto flags = std::make_shared<TrainFlags>();
  AddTrainOptions(command, flags.get());
  command->callback([=] {
    flags->normalizes =
        command->count("--scale") + command->count("--mean") + command->count("--std") > 0;
    *exit_code = Train(*command, *flags);
  });
}

}  // namespace tilewire::client
