// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/html_page.h"

#include "absl/strings/str_cat.h"
#include "client/load/report/svg_chart.h"

namespace tilewire::client {
namespace {

constexpr char kStyle[] = R"(
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.2em auto; max-width: 1240px;
  padding: 0 .8em; color: #1b1b1b; background: #fff; }
h1 { font-size: 1.35em; overflow-wrap: anywhere; } h2 { font-size: 1.1em; margin: 1.6em 0 .4em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .93em; }
th, td { padding: .25em .5em; text-align: right; vertical-align: bottom;
  border-bottom: 1px solid #ddd; } td { white-space: nowrap; }
th:first-child, td:first-child, .facts th, .facts td { text-align: left; } th { font-weight: 600; }
small { color: #666; } .charts { display: grid; gap: 1.2em;
  grid-template-columns: repeat(auto-fit, minmax(330px, 1fr)); }
figure { margin: 0; max-width: 620px; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: #333; } .grid { stroke: #e3e3e3; }
polyline { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .5em; }
.bad { color: #b00020; font-weight: 600; } li { margin: .2em 0; } footer { color: #666;
  margin-top: 2em; font-size: .87em; }
td:first-child { white-space: normal; min-width: 8em; }
td.wide { white-space: normal; min-width: 22em; }
@media (max-width: 600px) { th, td { padding: .25em .4em; } td:first-child { min-width: 6em; } })";

}  // namespace

std::string HtmlPage(absl::string_view title_text, absl::string_view body) {
  const std::string title = HtmlText(title_text);
  return absl::StrCat(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>",
      title, "</title><style>", kStyle, "</style></head><body>\n<h1>", title, "</h1>\n", body,
      "</body></html>\n");
}

std::string HtmlTable(absl::string_view title, absl::string_view head, absl::string_view rows,
                      absl::string_view attributes) {
  if (rows.empty()) return "";
  return absl::StrCat("<h2>", title, "</h2><div class=scroll><table", attributes, "><tr>", head,
                      "</tr>\n", rows, "</table></div>\n");
}

std::string HtmlSettings(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string rows;
  for (const auto& [name, value] : settings)
    absl::StrAppend(&rows, "<tr><td>", HtmlText(name), "<td>", HtmlText(value), "</tr>\n");
  return HtmlTable("Settings", "<th>flag<th>value", rows, " class=facts");
}

std::string HtmlNotes(const std::vector<std::string>& notes) {
  std::string items;
  for (const std::string& note : notes) absl::StrAppend(&items, "<li>", HtmlText(note), "</li>\n");
  return items.empty() ? "" : absl::StrCat("<h2>Notes</h2><ul>\n", items, "</ul>\n");
}

std::string HtmlFigure(absl::string_view caption, absl::string_view chart) {
  if (chart.empty()) return "";
  return absl::StrCat("<figure><figcaption>", caption, "</figcaption>", chart, "</figure>\n");
}

}  // namespace tilewire::client
