// SPDX-License-Identifier: Apache-2.0
#include "client/training/training_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

class TrainingLoop {
 public:
  TrainingLoop(Trainer* trainer, const Dataset& dataset, const ExampleOrder& order,
               const RunSettings& settings, const TrainingEvents& events)
      : trainer_(*trainer), dataset_(dataset), order_(order), settings_(settings), events_(events) {
    options_.stop = settings.stop;
    options_.interrupted = [this] {
      return IsStopped() ? absl::CancelledError("the training is stopped") : absl::OkStatus();
    };
    record_.updates_of_epoch = UpdatesOfEpoch(order.trained_count(), settings.batch);
  }

  TrainingRecord Run();

 private:
  bool IsStopped() const { return settings_.stop != nullptr && *settings_.stop; }
  absl::Status RunAll();
  absl::Status RunEpoch(int64_t epoch);
  absl::Status Recalibrate(absl::Span<const int64_t> examples);
  absl::Status UpdateOnce(absl::Span<const int64_t> examples, EpochFigures* figures,
                          double* counted);
  absl::StatusOr<std::optional<HeldOut>> LookAtHeldOut() const;

  Trainer& trainer_;
  const Dataset& dataset_;
  const ExampleOrder& order_;
  const RunSettings& settings_;
  const TrainingEvents& events_;
  const absl::Time began_ = absl::Now();
  RunOptions options_;
  TrainingRecord record_;
};

absl::StatusOr<std::optional<HeldOut>> TrainingLoop::LookAtHeldOut() const {
  if (order_.held_out().empty()) return std::nullopt;
  absl::StatusOr<HeldOut> held_out = EvaluateHeldOut(trainer_, dataset_, order_.held_out(),
                                                     settings_.batch, settings_.judged, options_);
  if (!held_out.ok()) return held_out.status();
  return *held_out;
}

// Adds the loss, weighted by what counts, to the figures, and the weight to `counted`.
absl::Status TrainingLoop::UpdateOnce(absl::Span<const int64_t> examples, EpochFigures* figures,
                                      double* counted) {
  const Batch batch = dataset_.Take(examples);
  const InputTensor input = batch.input.View();
  const absl::Time start = absl::Now();
  const absl::StatusOr<UpdateResult> result =
      trainer_.Update({&input, 1}, batch.TargetViews(), options_);
  if (!result.ok()) return result.status();
  record_.updating += absl::Now() - start;
  record_.elapsed = absl::Now() - began_;
  record_.examples += batch.count;
  record_.losses.push_back(result->skipped ? kNoLoss : result->loss);
  figures->rate = result->rate;
  if (result->skipped) {
    ++figures->skipped;
  } else {
    const double weight = WeightOf(batch.targets[0], batch.count, settings_.judged);
    figures->loss += result->loss * weight;
    *counted += weight;
  }
  if (events_.updated) events_.updated(record_);
  return absl::OkStatus();
}

absl::Status TrainingLoop::Recalibrate(absl::Span<const int64_t> examples) {
  for (const absl::Span<const int64_t> some : Batches(examples, settings_.batch)) {
    if (absl::Status status = options_.interrupted(); !status.ok()) return status;
    const Batch batch = dataset_.Take(some);
    const InputTensor input = batch.input.View();
    if (absl::Status status = trainer_.Recalibrate({&input, 1}, options_); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status TrainingLoop::RunEpoch(int64_t epoch) {
  EpochFigures figures{.epoch = epoch};
  const std::vector<int64_t> order = order_.OfEpoch(epoch);
  double counted = 0;
  for (const absl::Span<const int64_t> examples : Batches(order, settings_.batch)) {
    if (absl::Status status = options_.interrupted(); !status.ok()) return status;
    if (absl::Status status = UpdateOnce(examples, &figures, &counted); !status.ok()) return status;
  }
  if (settings_.recalibrates && epoch == settings_.epochs) {
    if (absl::Status status = Recalibrate(order); !status.ok()) return status;
  }
  figures.loss = counted > 0 ? figures.loss / counted : kNoLoss;
  auto held_out = LookAtHeldOut();
  if (!held_out.ok()) return held_out.status();
  figures.held_out = *held_out;
  record_.epochs.push_back(figures);
  if (events_.epoch_ended) events_.epoch_ended(figures);
  return absl::OkStatus();
}

absl::Status TrainingLoop::RunAll() {
  auto before = LookAtHeldOut();
  if (!before.ok()) return before.status();
  record_.before = *before;
  for (int64_t epoch = 1; epoch <= settings_.epochs; ++epoch) {
    if (absl::Status status = RunEpoch(epoch); !status.ok()) return status;
  }
  return absl::OkStatus();
}

TrainingRecord TrainingLoop::Run() {
  const absl::Status status = RunAll();
  record_.is_stopped = absl::IsCancelled(status) && IsStopped();
  if (!record_.is_stopped) record_.failure = status;
  record_.elapsed = absl::Now() - began_;
  return std::move(record_);
}

// The same with another message; reasons that it carries (engine/onnx/training_refusal.h) stay.
absl::Status WithMessage(const absl::Status& status, const std::string& message) {
  absl::Status other(status.code(), message);
  status.ForEachPayload([&other](absl::string_view type, const absl::Cord& payload) {
    other.SetPayload(type, payload);
  });
  return other;
}

// Whether one of these examples has a label that counts in this loss.
bool HasLabelThatCounts(const Dataset& dataset, absl::Span<const int64_t> examples,
                        const JudgedOutput& judged, size_t loss) {
  return absl::c_any_of(examples, [&](int64_t example) {
    const BatchTensor targets = dataset.TakeTargets(static_cast<int64_t>(loss), {&example, 1});
    return WeightOf(targets, 1, judged, loss) > 0;
  });
}

// kInvalidArgument: these examples have no label that counts, so that a loss of theirs has no mean.
absl::Status CheckCounts(const Dataset& dataset, absl::Span<const int64_t> examples,
                         const RunSettings& settings, absl::string_view what) {
  bool all_count = true;
  for (size_t loss = 0; loss < settings.judged.losses(); ++loss)
    all_count &= HasLabelThatCounts(dataset, examples, settings.judged, loss);
  if (all_count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      settings.sources.targets, ": no label of the ",
      CountText(static_cast<int64_t>(examples.size()), "example"), " ",
      examples.size() == 1 ? "that is " : "that are ", what,
      " counts in a loss: all of theirs are ignored, or of classes whose weight is 0"));
}

}  // namespace

int64_t UpdatesOfEpoch(int64_t trained_examples, int64_t batch) {
  return (trained_examples + batch - 1) / batch;
}

int64_t TrainingRecord::skipped() const {
  return std::count_if(losses.begin(), losses.end(), [](double loss) { return std::isnan(loss); });
}

int64_t TrainingRecord::skipped_at_end() const {
  const auto last = std::find_if_not(losses.rbegin(), losses.rend(),
                                     [](double loss) { return std::isnan(loss); });
  return last - losses.rbegin();
}

double TrainingRecord::examples_per_s() const {
  const double seconds = absl::ToDoubleSeconds(updating);
  return seconds > 0 ? static_cast<double>(examples) / seconds : 0;
}

std::optional<HeldOut> TrainingRecord::held_out() const {
  return epochs.empty() ? before : epochs.back().held_out;
}

absl::Status PrepareTraining(Trainer* trainer, const Dataset& dataset, const ExampleOrder& order,
                             const RunSettings& settings) {
  const std::vector<int64_t> examples = order.OfEpoch(1);
  const std::vector<absl::Span<const int64_t>> batches = Batches(examples, settings.batch);
  RunOptions options;
  options.interrupted = [] { return absl::OkStatus(); };
  std::vector<absl::Span<const int64_t>> sizes = {batches.front()};
  if (batches.back().size() != batches.front().size()) sizes.push_back(batches.back());
  std::vector<ElementBounds> bounds;  // the same for all sizes
  for (const absl::Span<const int64_t> some : sizes) {
    const Batch batch = dataset.Take(some);
    const InputTensor input = batch.input.View();
    auto prepared =
        trainer->Prepare({&input, 1}, batch.TargetViews(), settings.recalibrates, options);
    if (!prepared.ok()) {
      return WithMessage(prepared.status(),
                         absl::StrCat(prepared.status().message(), " (an update of ",
                                      CountText(batch.count, "example"), ")"));
    }
    bounds = *std::move(prepared);
  }
  if (absl::Status fit = CheckElements(dataset, bounds, *trainer, settings.sources); !fit.ok())
    return fit;
  absl::Status counts = CheckCounts(dataset, examples, settings, "trained on");
  if (counts.ok() && !order.held_out().empty())
    counts = CheckCounts(dataset, order.held_out(), settings, "held out");
  return counts;
}

TrainingRecord RunTraining(Trainer* trainer, const Dataset& dataset, const ExampleOrder& order,
                           const RunSettings& settings, const TrainingEvents& events) {
  return TrainingLoop(trainer, dataset, order, settings, events).Run();
}

}  // namespace tilewire::client
