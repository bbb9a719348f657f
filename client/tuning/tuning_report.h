// SPDX-License-Identifier: Apache-2.0
//
// The outcome of tuning: as lines of text, as JSON, and as one page that needs nothing else. Pure
// functions; names of files and nodes are shown without what a terminal or a browser would obey.
#ifndef CLIENT_TUNING_TUNING_REPORT_H_
#define CLIENT_TUNING_TUNING_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/error_budget.h"
#include "engine/tuner.h"

namespace tilewire::client {

// A picture whose answer changed.
struct ChangedPicture {
  std::string file;
  std::string thumbnail;  // an <img> element; may be empty
};

inline constexpr size_t kMostChangedInText = 20, kMostChangedInHtml = 100;

struct TuningReport {
  std::string model;
  std::vector<std::string> written;                           // files
  std::vector<std::pair<std::string, std::string>> settings;  // as the flags have them
  ErrorBudget budget;
  std::optional<double> goal;
  bool has_budget = true;                      // else `budget` only bounds what the goal takes
  bool is_made_up = false;                     // the inputs
  bool has_qdq = false, has_tuning = false;    // is among the files that are written
  std::vector<std::string> classes;            // their names; empty: not known
  std::map<int64_t, ChangedPicture> pictures;  // by example; of inputs that are not, none
  TuningResult result;
};

// The wish, as it follows "nothing ": "keeps l2<=0.01 and is 2x as fast as the exact model".
std::string WantedText(const TuningReport& report);

// "3 of 11 layers int8, written to tilewire.tuning", or why nothing was written.
std::string Headline(const TuningReport& report);

// Whether the model that was chosen is not the exact one, and no faster than that.
bool IsSlower(const TuningReport& report);

// "1.20e-02 where it was chosen, 1.10e-02 predicted by errors of single layers".
std::string L2Text(const TuningResult& result);

// The figures of a result as pairs of a name and a text, in the order of the text and the page:
// "answers", "1 of 400 changed: 0.25 %, ...".
std::vector<std::pair<std::string, std::string>> TuningFigures(const TuningReport& report);

// A changed answer in words: where it is, and its classes with their probabilities.
struct ChangedWords {
  std::string example, exact, tuned, label;  // "cats/3.png", "cat 0.51", "dog 0.49", "cat"
};
ChangedWords WordsOf(const TuningReport& report, const ChangedAnswer& changed);

// The points of the curve than which none is both faster and nearer, by their time.
std::vector<TriedPoint> BestPoints(const TuningReport& report);

// The caveats that a reader has to know beside the figures, a sentence each.
std::vector<std::string> TuningNotes(const TuningReport& report);

std::string TuningText(const TuningReport& report);
std::string TuningJson(const TuningReport& report);
std::string TuningHtml(const TuningReport& report);

}  // namespace tilewire::client

#endif  // CLIENT_TUNING_TUNING_REPORT_H_
