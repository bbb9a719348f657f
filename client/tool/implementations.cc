// SPDX-License-Identifier: Apache-2.0
//
// `tilewire implementations`: what the server has compiled in, for which instruction set and types.
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/tool/command.h"

namespace tilewire::client {
namespace {

// "f32 u8"
std::string TypesText(const v1::Implementation& row) {
  std::string text;
  for (int type : row.types()) {
    const std::string name = v1::DataType_Name(static_cast<v1::DataType>(type));
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    absl::AsciiStrToLower(absl::StripPrefix(name, "DATA_TYPE_")));
  }
  return text;
}

int RunImplementations(const Server& server, const std::string& only) {
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  const auto list = (*client)->ListImplementations();
  if (!list.ok()) return Report(list.status());
  absl::PrintF("the server's CPU: %s, allowed: %s; * marks what it can use\n", list->cpu_isa(),
               list->allowed_isa());
  std::set<std::string> primitives;
  for (const v1::Implementation& row : list->implementations()) primitives.insert(row.primitive());
  if (!only.empty() && primitives.count(only) == 0) {
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("--primitive: '", only, "' is none of ", absl::StrJoin(primitives, ", "))));
  }
  for (const v1::Implementation& row : list->implementations()) {
    if (!only.empty() && row.primitive() != only) continue;
    absl::PrintF("%c %-12s %-40s %s%s\n", row.usable() ? '*' : ' ', row.isa(), row.name(),
                 TypesText(row), row.by_cost() ? ", by cost" : "");
  }
  return 0;
}

}  // namespace

void AddImplementationsCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "implementations", "List the server's implementations by instruction set and type");
  command->footer(
      "Best first, except that neighbours marked `by cost` are asked in the order of their "
      "estimated cycles. `tilewire primitive` tells which of them serves a descriptor, and why the "
      "others do not.");
  auto only = std::make_shared<std::string>();
  command->add_option("--primitive", *only, "only this one's");
  command->callback([=, &server] { *exit_code = RunImplementations(server, *only); });
}

}  // namespace tilewire::client
