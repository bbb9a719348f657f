// SPDX-License-Identifier: Apache-2.0
#include "client/tool/train_flags.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/tool/command.h"
#include "client/tool/model_place.h"
#include "client/training/array_file.h"
#include "client/training/example_order.h"

namespace tilewire::client {
namespace {

template <typename Kind>
using Words = std::vector<std::pair<std::string, Kind>>;

const Words<LossSpec::Kind>& LossWords() {
  static const Words<LossSpec::Kind> kWords = {
      {"cross_entropy", LossSpec::Kind::kSoftmaxCrossEntropy},
      {"binary_cross_entropy", LossSpec::Kind::kBinaryCrossEntropy},
      {"mse", LossSpec::Kind::kMeanSquaredError},
      {"huber", LossSpec::Kind::kHuber}};
  return kWords;
}

const Words<OptimizerSpec::Kind>& OptimizerWords() {
  static const Words<OptimizerSpec::Kind> kWords = {{"sgd", OptimizerSpec::Kind::kSgd},
                                                    {"adam", OptimizerSpec::Kind::kAdam},
                                                    {"adamw", OptimizerSpec::Kind::kAdamW}};
  return kWords;
}

const Words<ScheduleSpec::Kind>& ScheduleWords() {
  static const Words<ScheduleSpec::Kind> kWords = {{"constant", ScheduleSpec::Kind::kConstant},
                                                   {"steps", ScheduleSpec::Kind::kSteps},
                                                   {"cosine", ScheduleSpec::Kind::kCosine},
                                                   {"polynomial", ScheduleSpec::Kind::kPolynomial}};
  return kWords;
}

template <typename Kind>
CLI::Validator OneOf(const Words<Kind>& words) {
  std::vector<std::string> names;
  for (const auto& [name, kind] : words) names.push_back(name);
  return CLI::IsMember(names);
}

// `word` is one of them: the option was checked.
template <typename Kind>
Kind KindOf(const Words<Kind>& words, const std::string& word) {
  return std::find_if(words.begin(), words.end(),
                      [&](const auto& one) { return one.first == word; })
      ->second;
}

template <typename Kind>
const std::string& WordOf(const Words<Kind>& words, Kind kind) {
  return std::find_if(words.begin(), words.end(),
                      [&](const auto& one) { return one.second == kind; })
      ->first;
}

double RateOf(const TrainFlags& flags) {
  return flags.rate.value_or(flags.optimizer == "sgd" ? 0.01 : 0.001);
}

constexpr double kMost = std::numeric_limits<float>::max();

void AddExampleOptions(CLI::App* command, TrainFlags* flags) {
  constexpr char kExamples[] = "Examples";
  CLI::Option* images =
      command->add_option("--images", flags->images,
                          "file of inputs [count, ...]: .u8 or .f32 without a header, or .npy");
  CLI::Option* labels = command->add_option(
      "--labels", flags->labels, "file of classes or targets: .u8, .s32, .s64, .f32 or .npy");
  images->check(CLI::ExistingFile)->needs(labels)->group(kExamples);
  labels->check(CLI::ExistingFile)->needs(images)->group(kExamples);
  command
      ->add_option("--folder", flags->folder,
                   "pictures (PGM, PPM, PNG, JPEG) in a folder for each class, which are numbered "
                   "by their names, in the place of both")
      ->check(CLI::ExistingDirectory)
      ->excludes(images)
      ->group(kExamples);
  command
      ->add_option("--shape", flags->shape,
                   "CxHxW of one example without a header, or of what pictures are made")
      ->group(kExamples);
  command->add_option("--layout", flags->layout, "of --images: nhwc if its shape is HxWxC")
      ->check(CLI::IsMember({"nchw", "nhwc"}))
      ->capture_default_str()
      ->group(kExamples);
  command
      ->add_option("--hold_out", flags->hold_out,
                   "share of the examples, 0 to below 1, that is not trained on; loss and accuracy "
                   "on it are reported after every epoch")
      ->capture_default_str()
      ->group(kExamples);
  AddPreparationOptions(command, &flags->pictures);
}

void AddLossOptions(CLI::App* command, TrainFlags* flags) {
  constexpr char kLoss[] = "Loss";
  command->add_option("--loss", flags->loss, "what is minimized")
      ->check(OneOf(LossWords()))
      ->capture_default_str()
      ->group(kLoss);
  command
      ->add_option("--loss_output", flags->loss_output,
                   "the output that it is of: logits of the two entropies; by default the first")
      ->group(kLoss);
  command
      ->add_option("--add_loss", flags->added_losses,
                   "OUTPUT:LOSS:FACTOR, the loss of another output by the same labels, which is "
                   "added times the factor: aux1:cross_entropy:0.3")
      ->allow_extra_args(false)
      ->group(kLoss);
  command->add_option("--label_smoothing", flags->label_smoothing, "of cross_entropy")
      ->check(Below(0, 1))
      ->capture_default_str()
      ->group(kLoss);
  command
      ->add_option("--ignore_index", flags->ignore_index,
                   "of cross_entropy: a label that counts for nothing, such as 255 or -100")
      ->group(kLoss);
  command
      ->add_option("--class_weights", flags->class_weights,
                   "of the two entropies: a weight for each class, in their order: 1,0.5,2; means "
                   "of cross_entropy are divided by the weights of the labels")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(Between(0, kMost))
      ->group(kLoss);
  command->add_option("--delta", flags->delta, "of huber: where it becomes linear")
      ->check(Between(1e-30, kMost))
      ->capture_default_str()
      ->group(kLoss);
}

void AddOptimizerOptions(CLI::App* command, TrainFlags* flags) {
  constexpr char kOptimizer[] = "Optimizer";
  const auto checked = [&](const char* name, double* value, const char* meaning,
                           const CLI::Validator& check) {
    command->add_option(name, *value, meaning)
        ->check(check)
        ->capture_default_str()
        ->group(kOptimizer);
  };
  const auto number = [&](const char* name, double* value, const char* meaning, double low,
                          double high) { checked(name, value, meaning, Between(low, high)); };
  command->add_option("--optimizer", flags->optimizer, "as torch defines them")
      ->check(OneOf(OptimizerWords()))
      ->capture_default_str()
      ->group(kOptimizer);
  command->add_option("--lr", flags->rate, "learning rate, above 0")
      ->check(Between(0, kMost))
      ->default_str("0.01; of adam and adamw 0.001")
      ->group(kOptimizer);
  number("--momentum", &flags->momentum, "of sgd", 0, 1);
  command->add_flag("--nesterov", flags->nesterov, "Nesterov's momentum, of sgd")
      ->group(kOptimizer);
  number("--decay", &flags->decay, "of weights; not of biases and normalizations", 0, kMost);
  checked("--beta1", &flags->beta1, "of adam and adamw", Below(0, 1));
  checked("--beta2", &flags->beta2, "of adam and adamw", Below(0, 1));
  number("--epsilon", &flags->epsilon, "of adam and adamw", 1e-30, 1);
  number("--clip_norm", &flags->clip_norm, "bound on the norm of all gradients; 0: none", 0, kMost);
  number("--clip_value", &flags->clip_value, "bound on each element of a gradient; 0: none", 0,
         kMost);
  checked("--average", &flags->average,
          "share that the average of parameters keeps at each update, such as 0.999, and at "
          "update n at most (1 + n) / (10 + n): it is what is judged and written; 0: none",
          Below(0, 1));
}

void AddScheduleOptions(CLI::App* command, TrainFlags* flags) {
  constexpr char kSchedule[] = "Learning rate over time";
  command->add_option("--schedule", flags->schedule, "of the rate")
      ->check(OneOf(ScheduleWords()))
      ->capture_default_str()
      ->group(kSchedule);
  command
      ->add_option("--warm_up", flags->warm_up,
                   "updates during which the rate rises; the schedule begins after them")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31))
      ->capture_default_str()
      ->group(kSchedule);
  command->add_option("--step_epochs", flags->step_epochs, "of steps: epochs between two")
      ->check(Between(0.001, 1e9))
      ->capture_default_str()
      ->group(kSchedule);
  command
      ->add_option("--step_factor", flags->step_factor, "of steps: by which the rate is multiplied")
      ->check(Between(0, 1))
      ->capture_default_str()
      ->group(kSchedule);
  command->add_option("--power", flags->power, "of polynomial")
      ->check(Between(1e-6, 1000))
      ->capture_default_str()
      ->group(kSchedule);
  command
      ->add_option("--least_lr", flags->least_rate, "of cosine and polynomial: the rate at the end")
      ->check(Between(0, kMost))
      ->capture_default_str()
      ->group(kSchedule);
}

void AddRunOptions(CLI::App* command, TrainFlags* flags) {
  constexpr char kRun[] = "Run";
  command->add_option("--epochs", flags->epochs, "how often each example is trained on")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str()
      ->group(kRun);
  command
      ->add_option("--batch", flags->batch,
                   "examples of an update; the last one of an epoch has what is left")
      ->check(AtLeastOne())
      ->capture_default_str()
      ->group(kRun);
  command
      ->add_option("--only", flags->only,
                   "train only parameters of these names, in which * stands for any characters")
      ->allow_extra_args(false)
      ->group(kRun);
  command->add_option("--freeze", flags->freeze, "leave parameters of these names as they are")
      ->allow_extra_args(false)
      ->group(kRun);
  command
      ->add_flag("--frozen_statistics", flags->frozen_statistics,
                 "normalize by the file's statistics, and keep them: for small batches")
      ->group(kRun);
  command
      ->add_flag("--recalibrate", flags->recalibrates,
                 "take the statistics of normalizations anew after the last update, from all "
                 "examples that are trained on")
      ->group(kRun);
  command
      ->add_option("--seed", flags->seed,
                   "of what is held out, the order of the examples, and dropout")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53))
      ->capture_default_str()
      ->group(kRun);
  command->add_option("--threads", flags->threads, "0: as many as cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group(kRun);
}

void AddResultOptions(CLI::App* command, TrainFlags* flags) {
  constexpr char kResult[] = "Result";
  command->add_option("-o,--output", flags->output, "the ONNX file that is written")
      ->required()
      ->check(Writable())
      ->group(kResult);
  command->add_option("--html", flags->html, "write a page with the loss curve to this file")
      ->check(Writable())
      ->group(kResult);
  command->add_flag("--json", flags->json, "print the result for programs")->group(kResult);
}

// Names of outputs may have colons.
absl::StatusOr<LossSpec> ParseAddedLoss(const std::string& text) {
  const auto invalid = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("--add_loss=", text, ": ", why));
  };
  const size_t last = text.rfind(':');
  const size_t first = last == std::string::npos || last == 0 ? last : text.rfind(':', last - 1);
  if (last == std::string::npos || first == std::string::npos || first == 0 || last == 0)
    return invalid("OUTPUT:LOSS:FACTOR is required, such as aux1:cross_entropy:0.3");
  LossSpec loss{.output = text.substr(0, first)};
  const std::string word = text.substr(first + 1, last - first - 1);
  const auto kind =
      absl::c_find_if(LossWords(), [&](const auto& one) { return one.first == word; });
  if (kind == LossWords().end()) {
    return invalid(absl::StrCat("'", word, "' is not one of ",
                                absl::StrJoin(LossWords(), ", ", [](std::string* out, auto& one) {
                                  out->append(one.first);
                                })));
  }
  loss.kind = kind->second;
  const std::string factor = text.substr(last + 1);
  if (!absl::SimpleAtod(factor, &loss.factor) || !(loss.factor > 0 && loss.factor < kMost))
    return invalid(absl::StrCat("the factor '", factor, "' is not a number above 0"));
  return loss;
}

// Whether it holds for a loss. The flags are valid.
bool HasLoss(const TrainFlags& flags, bool (*holds)(LossSpec::Kind kind)) {
  const auto losses = LossesOf(flags);
  return losses.ok() &&
         absl::c_any_of(*losses, [&](const LossSpec& loss) { return holds(loss.kind); });
}
bool TakesLabels(LossSpec::Kind kind) { return kind == LossSpec::Kind::kSoftmaxCrossEntropy; }
bool IsPositive(float weight) { return weight > 0; }
bool IsHuber(LossSpec::Kind kind) { return kind == LossSpec::Kind::kHuber; }

std::vector<FlagEffect> TrainEffects(const TrainFlags& flags) {
  constexpr char kForSgd[] = "it belongs to --optimizer=sgd";
  constexpr char kForAdam[] = "it belongs to --optimizer=adam or adamw";
  constexpr char kForSteps[] = "it belongs to --schedule=steps";
  constexpr char kForLabels[] = "it belongs to --loss=cross_entropy";
  const bool is_sgd = flags.optimizer == "sgd", is_folder = !flags.folder.empty();
  const bool has_end = flags.schedule == "cosine" || flags.schedule == "polynomial";
  return {
      {"--torchvision", is_folder, "it prepares pictures: give them as --folder"},
      {"--shape", !HasShape(flags.images), "the file of --images tells its shape"},
      {"--shape", flags.pictures.torchvision.empty(), "--torchvision gives pictures their size"},
      {"--layout", !is_folder, "the pictures of --folder are put in the model's order"},
      {"--momentum", is_sgd, kForSgd},
      {"--nesterov", is_sgd, kForSgd},
      {"--nesterov", flags.momentum > 0, "it needs a --momentum above 0"},
      {"--beta1", !is_sgd, kForAdam},
      {"--beta2", !is_sgd, kForAdam},
      {"--epsilon", !is_sgd, kForAdam},
      {"--label_smoothing", HasLoss(flags, TakesLabels), kForLabels},
      {"--ignore_index", HasLoss(flags, TakesLabels), kForLabels},
      {"--class_weights", HasLoss(flags, functions::HasClassWeights),
       "it belongs to --loss=cross_entropy or binary_cross_entropy"},
      {"--recalibrate", !flags.frozen_statistics, "--frozen_statistics keeps the file's"},
      {"--delta", HasLoss(flags, IsHuber), "it belongs to --loss=huber"},
      {"--step_epochs", flags.schedule == "steps", kForSteps},
      {"--step_factor", flags.schedule == "steps", kForSteps},
      {"--power", flags.schedule == "polynomial", "it belongs to --schedule=polynomial"},
      {"--least_lr", has_end, "it belongs to --schedule=cosine or polynomial"},
  };
}

}  // namespace

void AddTrainOptions(CLI::App* command, TrainFlags* flags) {
  command->add_option("model", flags->model, "the ONNX file to train")
      ->required()
      ->check(CLI::ExistingFile);
  AddExampleOptions(command, flags);
  AddLossOptions(command, flags);
  AddOptimizerOptions(command, flags);
  AddScheduleOptions(command, flags);
  AddRunOptions(command, flags);
  AddResultOptions(command, flags);
}

absl::Status CheckTrainFlags(const CLI::App& command, const TrainFlags& flags) {
  if (flags.images.empty() && flags.folder.empty())
    return absl::InvalidArgumentError("--images with --labels, or --folder is required");
  if (!flags.images.empty() && !HasShape(flags.images) && flags.shape.empty()) {
    if (absl::EndsWith(flags.images, ".npz")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--images=", flags.images, " is an archive: save one array, by numpy.save, as .npy"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--images=", flags.images, " has no header: --shape=CxHxW of one example is required"));
  }
  const auto losses = LossesOf(flags);
  if (!losses.ok()) return losses.status();
  for (const LossSpec& loss : *losses) {
    if (flags.folder.empty() || loss.kind == LossSpec::Kind::kSoftmaxCrossEntropy) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--folder gives classes, which --loss=cross_entropy takes and ",
                     WordOf(LossWords(), loss.kind), " does not"));
  }
  if (absl::Status status = CheckHoldOut(flags.hold_out); !status.ok()) return status;
  if (absl::Status status = CheckEffects(command, TrainEffects(flags)); !status.ok()) return status;
  if (!flags.class_weights.empty() && absl::c_none_of(flags.class_weights, IsPositive))
    return absl::InvalidArgumentError("--class_weights: all are 0; one at least must be positive");
  if (RateOf(flags) == 0 && !flags.recalibrates) {
    return absl::InvalidArgumentError(
        "--lr=0 changes no parameter: a rate above 0 is required, unless --recalibrate takes the "
        "statistics of normalizations anew");
  }
  if (const double rate = RateOf(flags); flags.least_rate > rate) {
    return absl::InvalidArgumentError(
        absl::StrCat("--least_lr=", flags.least_rate, " is above the learning rate, --lr=", rate));
  }
  absl::Status places = CheckWrittenFiles({{"--output", flags.output}, {"--html", flags.html}},
                                          {{"the model itself", flags.model},
                                           {"the file of --images", flags.images},
                                           {"the file of --labels", flags.labels}});
  return places.ok() ? CheckModelPlace("--output", flags.output) : places;
}

std::vector<std::pair<std::string, std::string>> GivenFlags(const CLI::App& command) {
  std::vector<std::pair<std::string, std::string>> given;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    given.emplace_back(option->get_name(), absl::StrJoin(option->results(), " "));
  }
  return given;
}

absl::StatusOr<std::vector<LossSpec>> LossesOf(const TrainFlags& flags) {
  std::vector<LossSpec> losses = {
      {.kind = KindOf(LossWords(), flags.loss), .output = flags.loss_output}};
  for (const std::string& text : flags.added_losses) {
    auto loss = ParseAddedLoss(text);
    if (!loss.ok()) return loss.status();
    losses.push_back(*std::move(loss));
  }
  for (LossSpec& loss : losses) {
    loss.delta = flags.delta;
    if (functions::HasClassWeights(loss.kind)) loss.class_weights = flags.class_weights;
    if (!TakesLabels(loss.kind)) continue;
    loss.label_smoothing = flags.label_smoothing;
    loss.ignore_index = flags.ignore_index;
  }
  return losses;
}

TrainingSpec SpecOf(const TrainFlags& flags, int64_t updates_of_epoch) {
  TrainingSpec spec;
  spec.losses = LossesOf(flags).value();
  spec.optimizer = {.kind = KindOf(OptimizerWords(), flags.optimizer),
                    .momentum = flags.momentum,
                    .nesterov = flags.nesterov,
                    .beta1 = flags.beta1,
                    .beta2 = flags.beta2,
                    .epsilon = flags.epsilon,
                    .weight_decay = flags.decay};
  const int64_t updates = flags.epochs * updates_of_epoch;
  const double every = flags.step_epochs * static_cast<double>(updates_of_epoch);
  spec.schedule = {.kind = KindOf(ScheduleWords(), flags.schedule),
                   .rate = RateOf(flags),
                   .warm_up = flags.warm_up,
                   .every = std::max<int64_t>(1, std::llround(every)),
                   .updates = std::max<int64_t>(1, updates - flags.warm_up),
                   .factor = flags.step_factor,
                   .power = flags.power,
                   .least = flags.least_rate};
  for (const std::string& pattern : flags.freeze)
    spec.groups.push_back({.pattern = pattern, .frozen = true});
  for (const std::string& pattern : flags.only) spec.groups.push_back({.pattern = pattern});
  if (!flags.only.empty()) spec.groups.push_back({.pattern = "*", .frozen = true});
  spec.clip_value = flags.clip_value;
  spec.clip_norm = flags.clip_norm;
  spec.average = flags.average;
  spec.frozen_statistics = flags.frozen_statistics;
  spec.seed = flags.seed;
  return spec;
}

}  // namespace tilewire::client
