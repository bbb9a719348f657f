// SPDX-License-Identifier: Apache-2.0
//
// The frame of a page that needs nothing else: no script, no font, no request. Arguments that are
// not called text are HTML.
#ifndef CLIENT_LOAD_REPORT_HTML_PAGE_H_
#define CLIENT_LOAD_REPORT_HTML_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tilewire::client {

// `title_text` is its title and its headline.
std::string HtmlPage(absl::string_view title_text, absl::string_view body);

// Rows below one head, with a title; nothing if there are none. `attributes` of the table, such as
// " class=facts", whose columns stand left.
std::string HtmlTable(absl::string_view title, absl::string_view head, absl::string_view rows,
                      absl::string_view attributes = "");

// Flags with their values, as text.
std::string HtmlSettings(const std::vector<std::pair<std::string, std::string>>& settings);

// A list of notes, which are text; empty without notes.
std::string HtmlNotes(const std::vector<std::string>& notes);

// The chart with its caption; empty without a chart.
std::string HtmlFigure(absl::string_view caption, absl::string_view chart);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REPORT_HTML_PAGE_H_
