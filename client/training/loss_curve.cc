// SPDX-License-Identifier: Apache-2.0
#include "client/training/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text_width.h"

namespace tilewire::client {
namespace {

constexpr int kWidth = 60, kHeight = 10, kLabelWidth = 9;

// The cells of a chart, whose row 0 is the highest.
class Cells {
 public:
  // Losses are those of `points`; epochs go from 0 to `epochs`.
  Cells(const LossPoints& points, double epochs)
      : rows_(kHeight, std::string(kWidth, ' ')), epochs_(epochs) {
    for (const auto& [epoch, loss] : points) {
      low_ = std::min(low_, loss);
      high_ = std::max(high_, loss);
    }
  }

  void Mark(const LossPoints& points, char mark) {
    for (const auto& [epoch, loss] : points) {
      const double up = high_ > low_ ? (loss - low_) / (high_ - low_) : 0;
      rows_[std::lround((1 - up) * (kHeight - 1))][std::lround(epoch / epochs_ * (kWidth - 1))] =
          mark;
    }
  }

  std::string Text() const {
    std::string text;
    for (int row = 0; row < kHeight; ++row) {
      const std::string label = row == 0             ? LossText(high_)
                                : row == kHeight - 1 ? LossText(low_)
                                                     : "";
      absl::StrAppend(&text, PaddedBefore(label, kLabelWidth), " |",
                      absl::StripTrailingAsciiWhitespace(rows_[row]), "\n");
    }
    const std::string end = absl::StrFormat("%.4g epochs", epochs_);
    return absl::StrCat(text, std::string(kLabelWidth + 1, ' '), "+", std::string(kWidth, '-'),
                        "\n", std::string(kLabelWidth + 2, ' '), "0", PaddedBefore(end, kWidth - 1),
                        "\n");
  }

 private:
  std::vector<std::string> rows_;
  double epochs_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

std::string LossText(double loss) { return std::isnan(loss) ? "-" : absl::StrFormat("%.4g", loss); }

LossPoints TrainedLosses(const TrainingRecord& record, int64_t most) {
  LossPoints points;
  const int64_t updates = record.updates(), parts = std::min(updates, most);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = updates * part / parts, end = updates * (part + 1) / parts;
    double sum = 0;
    int64_t count = 0;
    for (int64_t update = first; update < end; ++update) {
      if (std::isnan(record.losses[update])) continue;
      sum += record.losses[update];
      ++count;
    }
    if (count == 0) continue;
    points.emplace_back(
        static_cast<double>(first + end) / 2 / static_cast<double>(record.updates_of_epoch),
        sum / static_cast<double>(count));
  }
  return points;
}

LossPoints HeldOutLosses(const TrainingRecord& record) {
  LossPoints points;
  const auto add = [&](double epoch, const std::optional<HeldOut>& held_out) {
    if (held_out && std::isfinite(held_out->loss)) points.emplace_back(epoch, held_out->loss);
  };
  add(0, record.before);
  for (const EpochFigures& epoch : record.epochs)
    add(static_cast<double>(epoch.epoch), epoch.held_out);
  return points;
}

std::string LossChartText(const TrainingRecord& record) {
  const LossPoints trained = TrainedLosses(record, kWidth), held_out = HeldOutLosses(record);
  if (trained.size() < 2) return "";
  LossPoints all = trained;
  all.insert(all.end(), held_out.begin(), held_out.end());
  Cells cells(all,
              static_cast<double>(record.updates()) / static_cast<double>(record.updates_of_epoch));
  cells.Mark(trained, '*');
  cells.Mark(held_out, 'o');
  return absl::StrCat("loss: * trained on", held_out.empty() ? "" : ", o held out", "\n",
                      cells.Text());
}

}  // namespace tilewire::client
