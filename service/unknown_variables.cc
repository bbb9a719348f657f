// SPDX-License-Identifier: Apache-2.0
#include "service/unknown_variables.h"

#include <unistd.h>

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "service/wire/edit_distance.h"

namespace tilewire::service {
namespace {

constexpr absl::string_view kPrefix = "TILEWIRE_";

std::vector<std::string> KnownNames(const CLI::App& flags) {
  // Variables that no flag declares: the server, the engine or the client's tool reads them itself.
  std::vector<std::string> names = {"TILEWIRE_MODEL", "TILEWIRE_MODEL_REPOSITORY",
                                    "TILEWIRE_PERF_MAP", "TILEWIRE_SERVER"};
  for (const CLI::Option* option : flags.get_options()) {
    if (!option->get_envname().empty()) names.push_back(option->get_envname());
  }
  return names;
}

bool IsOfKubernetes(absl::string_view name) {
  return absl::StrContains(name, "_SERVICE_HOST") || absl::StrContains(name, "_SERVICE_PORT") ||
         absl::StrContains(name, "_PORT_");
}

// Empty if all are quite different: more than every third letter is.
std::string Nearest(absl::string_view name, const std::vector<std::string>& known) {
  const auto distance = [name](const std::string& other) { return EditDistance(name, other); };
  const auto nearest = std::min_element(known.begin(), known.end(),
                                        [&distance](const std::string& a, const std::string& b) {
                                          return distance(a) < distance(b);
                                        });
  const auto letters = static_cast<int>(name.size() - kPrefix.size());
  const bool is_near = nearest != known.end() && distance(*nearest) <= std::max(2, letters / 3);
  return is_near ? *nearest : "";
}

}  // namespace

std::vector<std::string> UnknownVariables(const CLI::App& flags) {
  const std::vector<std::string> known = KnownNames(flags);
  std::vector<std::string> sentences;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view variable = *entry;
    const absl::string_view name = variable.substr(0, variable.find('='));
    if (!absl::StartsWith(name, kPrefix) || absl::c_linear_search(known, name)) continue;
    if (IsOfKubernetes(name)) continue;
    const std::string meant = Nearest(name, known);
    sentences.push_back(absl::StrCat("the environment variable ", name, " is unknown and ignored",
                                     meant.empty() ? "" : absl::StrCat("; is ", meant, " meant?")));
  }
  return sentences;
}

}  // namespace tilewire::service
