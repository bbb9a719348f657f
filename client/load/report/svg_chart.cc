// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tilewire::client {
namespace {

// The area of the lines within the 400 x 250 of the chart.
constexpr double kLeft = 62, kRight = 380, kTop = 10, kBottom = 205;
// Between the values and the end of an axis, as a factor.
constexpr double kMargin = 1.05;
constexpr double kLabelWidth = 48, kLabelHeight = 14;

// One axis with the range of its values, as positions.
struct ChartScale {
  double low = 0, high = 1, from = 0, to = 1;
  bool is_logarithmic = false;

  double Position(double value) const {
    const auto scaled = [this](double v) { return is_logarithmic ? std::log10(v) : v; };
    return from + (to - from) * (scaled(value) - scaled(low)) / (scaled(high) - scaled(low));
  }
  bool Shows(double value) const { return std::isfinite(value) && (!is_logarithmic || value > 0); }
};

ChartScale ScaleOf(const ChartAxis& axis, const std::vector<ChartSeries>& series, bool is_x) {
  ChartScale scale;
  scale.is_logarithmic = axis.is_logarithmic;
  scale.from = is_x ? kLeft : kBottom;
  scale.to = is_x ? kRight : kTop;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const ChartSeries& one : series) {
    for (const auto& [x, y] : one.points) {
      const double value = is_x ? x : y;
      if (!scale.Shows(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (!axis.ticks.empty()) high = std::max(high, axis.ticks.back().first);
  scale.low = axis.is_logarithmic ? low : 0;
  scale.high = high;
  if (axis.is_logarithmic && axis.ticks.empty()) {
    scale.low /= kMargin;
    scale.high *= kMargin;
  }
  if (!(scale.high > scale.low)) scale.high = scale.low + 1;
  if (!is_x && !axis.is_logarithmic) scale.high *= kMargin;
  return scale;
}

// Multiples of 1, 2 or 5 times a power of ten.
std::vector<double> LinearTicks(const ChartScale& scale) {
  const double rough = (scale.high - scale.low) / 4;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough < 1.5 * power ? 1 : rough < 3.5 * power ? 2 : 5);
  std::vector<double> ticks;
  for (double times = std::ceil(scale.low / step); times * step <= scale.high * 1.0001; ++times)
    ticks.push_back(times * step);
  return ticks;
}

// On a logarithmic axis powers of ten, with their halves and fifths where there are few, and as on
// a linear one where these are few too.
std::vector<double> TicksOf(const ChartScale& scale) {
  if (!scale.is_logarithmic) return LinearTicks(scale);
  std::vector<double> ticks;
  const bool is_short = scale.high / scale.low < 1000;
  for (double power = std::pow(10, std::floor(std::log10(scale.low))); power <= scale.high;
       power *= 10) {
    for (const double times : {1.0, 2.0, 5.0}) {
      const double tick = times * power;
      if ((times == 1 || is_short) && tick >= scale.low && tick <= scale.high)
        ticks.push_back(tick);
    }
  }
  return ticks.size() < 3 ? LinearTicks(scale) : ticks;
}

// `room`: what a label takes of the axis; one that would meet the last one is left out.
std::vector<std::pair<double, std::string>> LabelledTicks(const ChartAxis& axis,
                                                          const ChartScale& scale, double room) {
  if (!axis.ticks.empty()) return axis.ticks;
  std::vector<std::pair<double, std::string>> ticks;
  double last = std::numeric_limits<double>::infinity();
  for (const double tick : TicksOf(scale)) {
    const double position = scale.Position(tick);
    if (std::fabs(position - last) < room) continue;
    last = position;
    ticks.emplace_back(tick, axis.text ? axis.text(tick) : absl::StrFormat("%.6g", tick));
  }
  return ticks;
}

std::string GridX(const ChartAxis& axis, const ChartScale& scale) {
  std::string svg;
  for (const auto& [value, text] : LabelledTicks(axis, scale, kLabelWidth)) {
    const double x = scale.Position(value);
    absl::StrAppendFormat(&svg,
                          "<path class=grid d=\"M%.1f %.1fV%.1f\"/>"
                          "<text x=%.1f y=%.1f text-anchor=middle>%s</text>",
                          x, kTop, kBottom, x, kBottom + 15, HtmlText(text));
  }
  absl::StrAppendFormat(&svg, "<text x=%.1f y=%.1f text-anchor=middle>%s</text>",
                        (kLeft + kRight) / 2, kBottom + 33, HtmlText(axis.label));
  return svg;
}

std::string GridY(const ChartAxis& axis, const ChartScale& scale) {
  std::string svg;
  for (const auto& [value, text] : LabelledTicks(axis, scale, kLabelHeight)) {
    const double y = scale.Position(value);
    absl::StrAppendFormat(&svg,
                          "<path class=grid d=\"M%.1f %.1fH%.1f\"/>"
                          "<text x=%.1f y=%.1f text-anchor=end>%s</text>",
                          kLeft, y, kRight, kLeft - 6, y + 4, HtmlText(text));
  }
  return svg;
}

using Positions = std::vector<std::pair<double, double>>;

std::string Dots(const Positions& positions, const ChartSeries& series) {
  std::string dots;
  for (const auto& [x, y] : positions) {
    absl::StrAppendFormat(&dots, "<circle cx=%.1f cy=%.1f r=2 fill=\"%s\"/>", x, y,
                          ChartColor(series.color));
  }
  return dots;
}

// A line of one point would not be seen.
std::string Piece(const Positions& positions, const ChartSeries& series) {
  if (positions.size() < 2 || series.style == LineStyle::kDots) return Dots(positions, series);
  std::string points;
  for (const auto& [x, y] : positions) absl::StrAppendFormat(&points, "%.1f,%.1f ", x, y);
  points.pop_back();
  const bool is_dashed = series.style == LineStyle::kDashed;
  return absl::StrFormat("<polyline points=\"%s\" stroke=\"%s\"%s><title>%s</title></polyline>",
                         points, ChartColor(series.color),
                         is_dashed ? " stroke-dasharray=\"5 3\"" : "", HtmlText(series.name));
}

std::string LineOf(const ChartSeries& series, const ChartScale& x, const ChartScale& y) {
  std::string line;
  Positions piece;
  for (const auto& [at, value] : series.points) {
    if (x.Shows(at) && y.Shows(value)) {
      piece.emplace_back(x.Position(at), y.Position(value));
      continue;
    }
    line += Piece(piece, series);
    piece.clear();
  }
  return line + Piece(piece, series);
}

}  // namespace

void ChartSeries::AddLevel(double from, double to, double value) {
  constexpr double kNowhere = std::numeric_limits<double>::quiet_NaN();
  if (!points.empty() && points.back().first < from) points.emplace_back(from, kNowhere);
  points.emplace_back(from, value);
  points.emplace_back(to, value);
}

std::string HtmlText(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

const char* ChartColor(size_t color) {
  // The first six are Okabe and Ito's: distinct for colour-blind readers too.
  static constexpr const char* kColors[kChartColors] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                        "#e69f00", "#56b4e9", "#6a4c93", "#555555"};
  return kColors[color % kChartColors];
}

std::string LineChart(const ChartAxis& x, const ChartAxis& y,
                      const std::vector<ChartSeries>& series) {
  const ChartScale x_scale = ScaleOf(x, series, true), y_scale = ScaleOf(y, series, false);
  std::string lines;
  for (const ChartSeries& one : series) lines += LineOf(one, x_scale, y_scale);
  if (lines.empty()) return "";
  return absl::StrCat("<svg viewBox=\"0 0 400 250\" role=img>", GridX(x, x_scale),
                      GridY(y, y_scale), lines, "</svg>\n");
}

}  // namespace tilewire::client
