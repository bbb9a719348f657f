// SPDX-License-Identifier: Apache-2.0
//
// By how much one load differs from another, and how much of that chance explains: what a load
// shows differs from second to second, and so it would at another time.
#ifndef CLIENT_LOAD_REPORT_REPORT_DIFFERENCE_H_
#define CLIENT_LOAD_REPORT_REPORT_DIFFERENCE_H_

#include <optional>
#include <string>
#include <vector>

#include "client/load/report/report.h"

namespace tilewire::client {

// One figure's, in per cent of the earlier one.
struct FigureDifference {
  double percent = 0;
  // Two standard errors, from how the seconds of each load differ; none if there are too few.
  std::optional<double> spread;
};

// A figure that one of the loads does not tell has no difference.
struct LoadDifference {
  std::string name;  // of the load
  std::optional<FigureDifference> rate, p50, p99;
};

// Two files, load by load.
struct LoadComparison {
  std::string earlier, later;
  std::vector<LoadDifference> loads;
};

// Each load of `later` is compared with the one of its name in `earlier`, or with the only one if
// both have one; those without a counterpart are left out. Equal names are taken in order.
std::vector<LoadDifference> Differences(const std::vector<LoadReport>& earlier,
                                        const std::vector<LoadReport>& later);

// "+3.1 % ±1.2"; without a spread "+3.1 %", without a difference "-".
std::string DifferenceText(const std::optional<FigureDifference>& difference);

// A line per load, and what it says; empty if there are none.
std::string ComparisonOfFilesText(const LoadComparison& comparison);

// For who reads differences.
inline constexpr char kSpreadNote[] =
    "±: two standard errors, from how the seconds of each load differ; a smaller difference may be "
    "chance";

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REPORT_REPORT_DIFFERENCE_H_
