// SPDX-License-Identifier: Apache-2.0
#include "client/tool/tune/tune_flags.h"

#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/tool/command.h"
#include "client/tool/model_place.h"
#include "client/training/array_file.h"

namespace tilewire::client {
namespace {

constexpr char kExact[] = "exact", kExactInt8[] = "exact,int8", kInt8Alone[] = "int8",
               kExactBf16[] = "exact,bf16", kAllPrecisions[] = "exact,bf16,int8";

void AddInputOptions(CLI::App* command, TuneFlags* flags) {
  constexpr char kInputs[] = "Inputs";
  CLI::Option* images = command->add_option(
      "--images", flags->images, "folder of pictures (PGM, PPM, PNG, JPEG), and folders in it");
  images->check(CLI::ExistingDirectory)->group(kInputs);
  CLI::Option* folder = command->add_option(
      "--folder", flags->folder,
      "pictures in a folder for each class, which are numbered by their names, as of train; tells "
      "accuracy, too");
  folder->check(CLI::ExistingDirectory)->excludes(images)->group(kInputs);
  command
      ->add_option("--array", flags->arrays,
                   "[INPUT=]FILE of inputs [count, ...]: .npy, or .u8 or .f32 without a header; "
                   "one for each input of the model")
      ->allow_extra_args(false)
      ->excludes(images)
      ->excludes(folder)
      ->group(kInputs);
  command
      ->add_option("--labels", flags->labels,
                   "file of the right classes, one for each input: .u8, .s32, .s64 or .npy; then "
                   "accuracy is told, before and after. Pictures are in the order of their names")
      ->check(CLI::ExistingFile)
      ->excludes(folder)
      ->group(kInputs);
  command
      ->add_option("--shape", flags->shape, "CxHxW of one example of an --array without a header")
      ->group(kInputs);
  command
      ->add_option("--free_size", flags->free_size,
                   "height and width where the model leaves them open")
      ->check(AtLeastOne())
      ->capture_default_str()
      ->group(kInputs);
  command
      ->add_option("--made_up", flags->made_up,
                   "how many inputs are made up if there are neither pictures nor arrays")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 20))
      ->capture_default_str()
      ->group(kInputs);
  AddPreparationOptions(command, &flags->pictures);
}

void AddChoiceOptions(CLI::App* command, TuneFlags* flags) {
  constexpr char kChoice[] = "Choice";
  command
      ->add_option("--budget", flags->budget,
                   "the error that outputs may have: top1_changed<=0.5%, l2<=1e-2 or psnr>=40, or "
                   "with labels accuracy_drop<=0.5%; l2(NAME)<=1e-2 is of the output NAME")
      ->group(kChoice);
  command
      ->add_option("--goal", flags->goal,
                   "how much faster it has to be, such as 2x: then the least error that gives this "
                   "is looked for, within --budget, if there is one")
      ->group(kChoice);
  command
      ->add_option("--precisions", flags->precisions,
                   "among which each layer gets one; int8 alone: all layers that can be are. If "
                   "not given: exact,int8, and with --tuning bf16, too, if this CPU has it. exact "
                   "alone, with --rows: the numbers change by roundings of f32 only")
      ->check(CLI::IsMember({kExact, kExactInt8, kExactBf16, kAllPrecisions, kInt8Alone})
                  .description("exact, exact,int8, exact,bf16, exact,bf16,int8 or int8"))
      ->group(kChoice);
  command
      ->add_flag("--rows", flags->rows,
                 "time the rows (see tilewire implementations) of each layer, too; the tuning says "
                 "which are the fastest, where servers else choose by estimates")
      ->group(kChoice);
  command
      ->add_option("--hold_out", flags->hold_out,
                   "share of the inputs that is not used for choosing, and checks the result")
      ->check(Between(0.01, 0.99))
      ->capture_default_str()
      ->group(kChoice);
  command
      ->add_option("--time", flags->time,
                   "for measuring and choosing, such as 90s, 5m or 1h; inputs that it has no room "
                   "for are left out")
      ->capture_default_str()
      ->group(kChoice);
  command->add_option("--seed", flags->seed, "of which inputs are held out, and of made-up ones")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53))
      ->capture_default_str()
      ->group(kChoice);
  command->add_option("--threads", flags->threads, "0: as many as cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group(kChoice);
}

void AddTunedOptions(CLI::App* command, TuneFlags* flags) {
  constexpr char kResult[] = "Result";
  command
      ->add_flag("--tuning", flags->tuning,
                 "write tilewire.tuning into the folder of the model, with which servers load it")
      ->group(kResult);
  command
      ->add_option("--qdq", flags->qdq,
                   "write an ONNX file with the layers of int8, which other runtimes take, too")
      ->check(Writable())
      ->group(kResult);
  command->add_option("--html", flags->html, "write a page with the report to this file")
      ->check(Writable())
      ->group(kResult);
  command->add_flag("--json", flags->json, "print the report for programs")->group(kResult);
}

std::vector<FlagEffect> TuneEffects(const TuneFlags& flags) {
  const bool has_pictures = !flags.images.empty() || !flags.folder.empty();
  bool has_bare_array = false;
  for (const std::string& array : flags.arrays) has_bare_array |= !HasShape(array);
  return {
      {"--torchvision", has_pictures, "it prepares pictures: give them as --images or --folder"},
      {"--labels", !flags.is_made_up(), "inputs that are made up have no right classes"},
      {"--scale", !flags.is_made_up(), "inputs that are made up are not normalized"},
      {"--mean", !flags.is_made_up(), "inputs that are made up are not normalized"},
      {"--std", !flags.is_made_up(), "inputs that are made up are not normalized"},
      {"--shape", has_bare_array, "it belongs to an --array without a header"},
      {"--free_size", flags.arrays.empty(), "the files of --array tell their shapes"},
      {"--free_size", flags.pictures.torchvision.empty(),
       "--torchvision gives pictures their size"},
      {"--made_up", flags.is_made_up(), "inputs are given"},
      {"--rows", flags.tuning, "a QDQ file has no rows; --tuning keeps them"},
  };
}

absl::Status CheckTunedPlaces(const TuneFlags& flags) {
  NamedFiles read = {{"the model itself", flags.model}};
  if (!flags.labels.empty()) read.emplace_back("the file of --labels", flags.labels);
  for (const std::string& array : flags.arrays)
    read.emplace_back("a file of --array", array.substr(array.find('=') + 1));
  const std::string tuning = flags.tuning ? TuningFileOf(flags.model) : "";
  absl::Status status =
      CheckWrittenFiles({{"--tuning", tuning}, {"--qdq", flags.qdq}, {"--html", flags.html}}, read);
  for (const auto& [flag, file] : {std::pair("--tuning", tuning), std::pair("--qdq", flags.qdq)}) {
    if (status.ok() && !file.empty()) status = CheckModelPlace(flag, file);
  }
  return status;
}

// The budget of a goal without one: an error larger than the output itself is never kept.
constexpr char kBudgetOfGoal[] = "l2<=1";

absl::StatusOr<double> ParseGoal(const std::string& text) {
  absl::string_view digits = text;
  absl::ConsumeSuffix(&digits, "x");
  double goal = 0;
  if (absl::SimpleAtod(digits, &goal) && goal > 1 && goal <= 100) return goal;
  return absl::InvalidArgumentError(
      absl::StrCat("--goal=", text, " is not a speed above 1, up to 100, such as 2x"));
}

absl::Status TakePrecisions(const TuneFlags& flags, bool has_bf16, TuningSpec* spec) {
  const std::string usual = flags.tuning && has_bf16 ? kAllPrecisions : kExactInt8;
  const std::string& given = flags.precisions.empty() ? usual : flags.precisions;
  spec->may_stay_exact = given != kInt8Alone;
  spec->may_be_bf16 = given == kExactBf16 || given == kAllPrecisions;
  spec->may_be_int8 = given != kExactBf16 && given != kExact;
  spec->chooses_rows = flags.rows;
  if (!flags.tuning && flags.qdq.empty()) {
    return absl::InvalidArgumentError(
        "--tuning or --qdq is required: the first writes tilewire.tuning beside the model, for "
        "servers of this kind, the second an ONNX file, for other runtimes, too");
  }
  if (given == kExact && !flags.rows) {
    return absl::InvalidArgumentError(
        "--precisions=exact: nothing would change without --rows, which chooses the rows of "
        "exact layers by measurement");
  }
  if (!spec->may_be_bf16 || flags.tuning) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--precisions=", given, ": a QDQ file has no products of bf16; --tuning keeps them"));
}

}  // namespace

void AddTuneOptions(CLI::App* command, TuneFlags* flags) {
  command->add_option("model", flags->model, "the ONNX file to tune")
      ->required()
      ->check(CLI::ExistingFile);
  AddInputOptions(command, flags);
  AddChoiceOptions(command, flags);
  AddTunedOptions(command, flags);
}

absl::StatusOr<TuningSpec> TuningSpecOf(const CLI::App& command, const TuneFlags& flags,
                                        bool has_bf16) {
  if (flags.budget.empty() && flags.goal.empty()) {
    return absl::InvalidArgumentError(
        "--budget or --goal is required: the error that outputs may have, such as "
        "--budget=\"top1_changed<=0.5%\", or the speed that is wanted, such as --goal=2x");
  }
  const auto budget = ErrorBudget::Parse(flags.budget.empty() ? kBudgetOfGoal : flags.budget);
  if (!budget.ok())
    return absl::InvalidArgumentError(absl::StrCat("--budget: ", budget.status().message()));
  const bool has_labels = !flags.labels.empty() || !flags.folder.empty();
  if (budget->measure() == ErrorMeasure::kAccuracyDrop && !has_labels) {
    return absl::InvalidArgumentError(
        absl::StrCat("--budget=", flags.budget,
                     " needs the right classes: --labels=FILE, or pictures in a folder for each "
                     "class, --folder=DIR"));
  }
  TuningSpec spec(*budget);
  if (!flags.goal.empty()) {
    const auto goal = ParseGoal(flags.goal);
    if (!goal.ok()) return goal.status();
    spec.goal = *goal;
  }
  if (!absl::ParseDuration(flags.time, &spec.time) || spec.time <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--time=", flags.time, " is not a time above 0, such as 90s, 5m or 1h"));
  }
  absl::Status status = CheckEffects(command, TuneEffects(flags));
  if (status.ok()) status = CheckTunedPlaces(flags);
  if (status.ok()) status = TakePrecisions(flags, has_bf16, &spec);
  if (!status.ok()) return status;
  spec.hold_out = flags.hold_out;
  spec.seed = flags.seed;
  spec.is_made_up = flags.is_made_up();
  return spec;
}

}  // namespace tilewire::client
