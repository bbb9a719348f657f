// SPDX-License-Identifier: Apache-2.0
//
// How --help looks: for each option its values and default in few words, then what it means, in 80
// columns.
#ifndef CLIENT_TOOL_HELP_FORMAT_H_
#define CLIENT_TOOL_HELP_FORMAT_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace tilewire::client {

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;

 protected:
  // Paragraphs, which are joined and wrapped, and lines that begin with a space: commands.
  static std::string Fitted(absl::string_view text);
  // The name, and what it means beside it, or below a name that is too long.
  static std::string Entry(absl::string_view name, absl::string_view meaning);
};

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_HELP_FORMAT_H_
