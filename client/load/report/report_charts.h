// SPDX-License-Identifier: Apache-2.0
//
// The charts of a record's page, and the colors by which they and its tables name runs and parts.
#ifndef CLIENT_LOAD_REPORT_REPORT_CHARTS_H_
#define CLIENT_LOAD_REPORT_REPORT_CHARTS_H_

#include <map>
#include <string>
#include <utility>

#include "client/load/record.h"

namespace tilewire::client {

// Only so many lines can be told apart: the first runs are drawn, those of a search its last ones.
// The same holds for the parts of a mix, which have a chart and colors of their own.
struct ReportColors {
  explicit ReportColors(const LoadRecord& record);

  std::map<size_t, size_t> of_run;                      // by its number
  std::map<std::pair<size_t, size_t>, size_t> of_part;  // by the numbers of its run and of the part
};

// <figure> elements. Counts over time are those of single seconds.
std::string ChartsHtml(const LoadRecord& record, const ReportColors& colors);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REPORT_REPORT_CHARTS_H_
