// SPDX-License-Identifier: Apache-2.0
//
// The outcome of tuning: as lines of text, as JSON, and as one page that needs nothing else. Pure
// functions; names of files and nodes are shown without what a terminal or a browser would obey.
#ifndef CLIENT_TUNING_TUNING_REPORT_H_
#define CLIENT_TUNING_TUNING_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/error_budget.h"
#include "engine/tuner.h"

namespace tilewire::client {

struct TuningReport {
  std::string model;
  std::vector<std::string> written;                           // files
  std::vector<std::pair<std::string, std::string>> settings;  // as the flags have them
  ErrorBudget budget;
  bool is_made_up = false;  // the inputs
  bool has_qdq = false;     // a QDQ file is among those that are written
  TuningResult result;
};

// "1.20e-02, predicted 1.10e-02".
std::string L2Text(const TuningResult& result);

// The caveats that a reader has to know beside the figures, a sentence each.
std::vector<std::string> TuningNotes(const TuningReport& report);

std::string TuningText(const TuningReport& report);
std::string TuningJson(const TuningReport& report);
std::string TuningHtml(const TuningReport& report);

}  // namespace tilewire::client

#endif  // CLIENT_TUNING_TUNING_REPORT_H_
