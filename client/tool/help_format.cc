// SPDX-License-Identifier: Apache-2.0
#include "client/tool/help_format.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tilewire::client {
namespace {

constexpr size_t kHelpColumns = 80;
constexpr size_t kMeaningColumn = 28;

// `text` in lines that end before kHelpColumns, each after `indent` spaces, all but the last one
// with `more` at their ends.
std::string Wrapped(absl::string_view text, size_t indent, absl::string_view more = "") {
  std::string lines, line;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!line.empty() && indent + line.size() + 1 + word.size() + more.size() > kHelpColumns) {
      absl::StrAppend(&lines, std::string(indent, ' '), line, more, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return absl::StrCat(lines, std::string(indent, ' '), line, "\n");
}

// A list of choices that is too long goes on below, after a comma.
std::string WrappedHead(absl::string_view head) {
  if (head.size() <= kHelpColumns) return std::string(head);
  std::string lines, line;
  for (absl::string_view choice : absl::StrSplit(head, ',')) {
    if (line.size() + 1 + choice.size() >= kHelpColumns) {
      absl::StrAppend(&lines, line, ",\n");
      line = absl::StrCat("      ", choice);
    } else {
      absl::StrAppend(&line, line.empty() ? "" : ",", choice);
    }
  }
  return lines + line;
}

}  // namespace

std::string HelpFormat::Fitted(absl::string_view text) {
  std::string fitted, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) fitted += Wrapped(paragraph, 0);
    paragraph.clear();
  };
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!line.empty() && line[0] != ' ') {
      absl::StrAppend(&paragraph, paragraph.empty() ? "" : " ", line);
      continue;
    }
    end_paragraph();
    // A command that is too long goes on after a backslash, which shells understand.
    fitted += line.size() <= kHelpColumns ? absl::StrCat(line, "\n")
                                          : "  " + Wrapped(line, 4, " \\").substr(4);
  }
  end_paragraph();
  return fitted;
}

std::string HelpFormat::Entry(absl::string_view name, absl::string_view meaning) {
  const std::string head = WrappedHead(absl::StrCat("  ", name));
  const std::string below = Wrapped(meaning, kMeaningColumn);
  if (head.size() + 2 > kMeaningColumn) return absl::StrCat(head, "\n", below);
  return absl::StrCat(head, below.substr(head.size()));
}

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
  return Entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

// The type stands before what validators say, which may be a list of choices.
std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  const std::string type = option->get_type_name();
  const size_t colon = type.find(':');
  const bool has_choices = colon != std::string::npos && type[colon + 1] == '{';
  std::string text = " " + (has_choices ? type.substr(colon + 1) : type.substr(0, colon));
  if (option->get_expected_max() > 1) text += "...";
  std::string value = option->get_default_str();
  if (value.size() > 1 && value.front() == '[') value = value.substr(1, value.size() - 2);
  if (!value.empty()) absl::StrAppend(&text, " [", value, "]");
  if (option->get_required()) text += " (required)";
  if (!option->get_envname().empty()) absl::StrAppend(&text, " ($", option->get_envname(), ")");
  return text;
}

std::string HelpFormat::make_description(const CLI::App* command) const {
  return Fitted(command->get_description());
}

std::string HelpFormat::make_footer(const CLI::App* command) const {
  return command->get_footer().empty() ? "" : Fitted(command->get_footer());
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  return Entry(command->get_name(), command->get_description());
}

}  // namespace tilewire::client
