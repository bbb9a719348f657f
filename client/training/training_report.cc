// SPDX-License-Identifier: Apache-2.0
#include "client/training/training_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "client/training/loss_curve.h"
#include "nlohmann/json.hpp"

namespace tilewire::client {
namespace {

using nlohmann::json;

std::string SecondsText(absl::Duration duration) {
  if (duration < absl::Milliseconds(100)) return "0s";
  return absl::FormatDuration(absl::Trunc(
      duration, duration < absl::Seconds(10) ? absl::Milliseconds(100) : absl::Seconds(1)));
}

std::string SkippedText(int64_t skipped) {
  if (skipped == 0) return "";
  return absl::StrCat(", ", skipped, " skipped: a loss or gradient was not finite");
}

// The loss of the last epoch that was finished, or of all updates if none was.
std::string LossSummary(const TrainingRecord& record) {
  if (record.epochs.empty()) {
    const LossPoints mean = TrainedLosses(record, 1);
    return absl::StrCat(mean.empty() ? "-" : LossText(mean[0].second), ", mean of all updates");
  }
  const EpochFigures& first = record.epochs.front();
  const EpochFigures& last = record.epochs.back();
  return absl::StrCat(LossText(first.loss), " in the first epoch",
                      last.epoch == first.epoch
                          ? ""
                          : absl::StrCat(", ", LossText(last.loss), " in epoch ", last.epoch));
}

json JsonOfLoss(double loss) { return std::isfinite(loss) ? json(loss) : json(nullptr); }

json JsonOf(const std::optional<HeldOut>& held_out) {
  if (!held_out) return nullptr;
  json object = {{"loss", JsonOfLoss(held_out->loss)}};
  if (held_out->judged == 0) return object;
  object["accuracy"] = held_out->accuracy();
  object["right"] = held_out->right;
  object["judged"] = held_out->judged;
  return object;
}

}  // namespace

std::string HeldOutText(const HeldOut& held_out) {
  const std::string loss = absl::StrCat("loss ", LossText(held_out.loss));
  if (held_out.judged == 0) return loss;
  return absl::StrFormat("%s, accuracy %.4f (%d of %d)", loss, held_out.accuracy(), held_out.right,
                         held_out.judged);
}

std::string EpochText(const EpochFigures& figures) {
  return absl::StrCat(
      "epoch ", figures.epoch, ": loss ", LossText(figures.loss), SkippedText(figures.skipped),
      figures.held_out ? absl::StrCat(", held out: ", HeldOutText(*figures.held_out)) : "");
}

std::string TrainingProgressText(const TrainingRecord& so_far, int64_t epochs) {
  const int64_t done = so_far.updates(), all = epochs * so_far.updates_of_epoch;
  const int64_t epoch = std::min(epochs, (done - 1) / so_far.updates_of_epoch + 1);
  const absl::Duration left = so_far.elapsed * (static_cast<double>(all - done) / done);
  return absl::StrFormat("epoch %d/%d  update %d of %d  loss %s  %s examples/s  %s left", epoch,
                         epochs, done, all, LossText(so_far.losses.back()),
                         RateText(so_far.examples_per_s()), SecondsText(left));
}

std::vector<std::string> TrainingWarnings(const TrainingRecord& record) {
  std::vector<std::string> warnings;
  const auto first = std::find_if(record.losses.begin(), record.losses.end(),
                                  [](double loss) { return std::isfinite(loss); });
  // The loss of an update is that of its examples alone, so that some more says nothing.
  constexpr double kFarAbove = 2;
  const double last = record.epochs.empty() ? NAN : record.epochs.back().loss;
  if (first != record.losses.end() && last > kFarAbove * std::abs(*first)) {
    warnings.push_back(absl::StrCat("the loss rose: it was ", LossText(*first),
                                    " before the first update, and is ", LossText(last),
                                    " in the last epoch; a smaller --lr helps"));
  }
  if (const int64_t last = record.skipped_at_end(); last > 0) {
    warnings.push_back(absl::StrCat("the last ", last == 1 ? "update" : CountText(last, "update"),
                                    " of ", record.updates(), last == 1 ? " was" : " were",
                                    " skipped, because a loss or a gradient was not finite: the "
                                    "parameters may be ruined; a smaller --lr helps"));
  }
  const auto held_out = record.held_out();
  if (!record.epochs.empty() && record.before && held_out && held_out->loss > record.before->loss) {
    warnings.push_back(absl::StrCat(
        "on what is held out the loss is larger than before training: ", LossText(held_out->loss),
        ", it was ", LossText(record.before->loss)));
  }
  return warnings;
}

std::string TrainingText(const TrainingReport& report) {
  const TrainingRecord& record = report.record;
  const int64_t all = report.epochs * record.updates_of_epoch;
  std::string text = LossChartText(record);
  absl::StrAppend(&text, "updates   ", record.updates(),
                  record.is_stopped ? absl::StrCat(" of ", all, ", then it was stopped") : "",
                  SkippedText(record.skipped()), "\n");
  absl::StrAppend(&text, "loss      ", LossSummary(record), "\n");
  if (const auto held_out = record.held_out()) {
    absl::StrAppend(&text, "held out  ", HeldOutText(*held_out),
                    "; before training: ", HeldOutText(*record.before), "\n");
  }
  absl::StrAppend(&text, "time      ", SecondsText(record.elapsed), ", ",
                  RateText(record.examples_per_s()), " examples/s in updates\n");
  absl::StrAppend(
      &text, "written   ",
      report.written.empty() ? "nothing: no update was made" : ShownText(report.written), "\n");
  for (const std::string& warning : TrainingWarnings(record))
    absl::StrAppend(&text, "warning   ", warning, "\n");
  return text;
}

std::string TrainingJson(const TrainingReport& report) {
  const TrainingRecord& record = report.record;
  json epochs = json::array();
  for (const EpochFigures& epoch : record.epochs) {
    epochs.push_back({{"epoch", epoch.epoch},
                      {"loss", JsonOfLoss(epoch.loss)},
                      {"rate", epoch.rate},
                      {"skipped", epoch.skipped},
                      {"held_out", JsonOf(epoch.held_out)}});
  }
  json losses = json::array();
  for (const double loss : record.losses) losses.push_back(JsonOfLoss(loss));
  json settings = json::object();
  for (const auto& [name, value] : report.settings) settings[name] = value;
  const json object = {
      {"model", report.model},
      {"settings", settings},
      {"notes", report.notes},
      {"warnings", TrainingWarnings(record)},
      {"classes", report.classes},
      {"updates", record.updates()},
      {"updates_of_epoch", record.updates_of_epoch},
      {"skipped", record.skipped()},
      {"stopped", record.is_stopped},
      {"before", JsonOf(record.before)},
      {"epochs", epochs},
      {"losses", losses},
      {"seconds", absl::ToDoubleSeconds(record.elapsed)},
      {"examples_per_s", record.examples_per_s()},
      {"failure", report.failure.ok() ? json(nullptr) : json(report.failure.ToString())},
      {"written", report.written}};
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tilewire::client
