// SPDX-License-Identifier: Apache-2.0
//
// Line charts as SVG elements that stand in a page: 400 units wide, so that their text is legible
// on a narrow screen.
#ifndef CLIENT_LOAD_REPORT_SVG_CHART_H_
#define CLIENT_LOAD_REPORT_SVG_CHART_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tilewire::client {

struct ChartAxis {
  std::string label;
  bool is_logarithmic = false;
  std::function<std::string(double)> text;            // of a value
  std::vector<std::pair<double, std::string>> ticks;  // if not chosen by the values
};

enum class LineStyle { kSolid, kDashed, kDots };

struct ChartSeries {
  std::string name;
  size_t color = 0;  // series of one run share theirs
  LineStyle style = LineStyle::kSolid;
  // In the order in which the line meets them; it is interrupted at those that cannot be shown,
  // such as NaN.
  std::vector<std::pair<double, double>> points;

  // A level over a stretch of x, which the line keeps; it breaks off before `from` if the last one
  // did not end there.
  void AddLevel(double from, double to, double value);
};

// "&lt;" for "<" and so on.
std::string HtmlText(absl::string_view text);

// An <svg> element; empty if there are no points. A linear axis begins at 0; a logarithmic one
// cannot show what is not above 0.
std::string LineChart(const ChartAxis& x, const ChartAxis& y,
                      const std::vector<ChartSeries>& series);

// Distinct ones, such as "#0072b2"; beyond them they would come again.
inline constexpr size_t kChartColors = 8;
const char* ChartColor(size_t color);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REPORT_SVG_CHART_H_
