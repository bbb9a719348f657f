// SPDX-License-Identifier: Apache-2.0
//
// Flags of `tilewire load` that are right by themselves and wrong together.
#include <map>

#include "absl/strings/str_cat.h"
#include "client/tool/command.h"
#include "client/tool/load_flags.h"

namespace tilewire::client {
namespace {

constexpr int64_t kFewestForP99 = 100;

constexpr char kForSearch[] = "it belongs to a search: add --find_rate";
constexpr char kForOpenLoop[] = "it belongs to an open loop: --rate, --profile or --find_rate";
constexpr char kForPictures[] = "it prepares pictures: add --image";

std::vector<FlagEffect> EffectsOf(const LoadFlags& flags) {
  const bool is_open = flags.find_rate || !flags.rates.empty() || !flags.profile.empty();
  const bool has_pictures = !flags.images.empty();
  const bool is_random = !has_pictures && flags.arrays.empty();
  const bool draws = is_random || is_open || !flags.think.empty() || !flags.mix.empty();
  return {
      {"--p99", flags.find_rate,
       "it is the bound of a search: add --find_rate, or judge a load by --require=\"p99<20ms\""},
      {"--first_rate", flags.find_rate, kForSearch},
      {"--precision", flags.find_rate, kForSearch},
      {"--search_time", flags.find_rate, kForSearch},
      {"--arrivals", is_open, kForOpenLoop},
      {"--connections", is_open,
       "each caller of a closed loop has its own; it belongs to --rate, --profile or --find_rate"},
      {"--max_waiting", is_open, kForOpenLoop},
      {"--duration", flags.profile.empty(), "--profile has its own length"},
      {"--duration", flags.requests == 0, "--requests ends the load instead"},
      {"--batch", flags.mix.empty(), "--mix has a batch for each part, as in NAME@8"},
      {"--inputs", is_random, "the requests are those of --array or --image"},
      {"--free_size", flags.arrays.empty(), "the arrays have their sizes"},
      {"--torchvision", has_pictures, kForPictures},
      {"--scale", has_pictures, kForPictures},
      {"--mean", has_pictures, kForPictures},
      {"--std", has_pictures, kForPictures},
      {"--seed", draws, "callers that send files in turn draw nothing by chance"},
  };
}

absl::Status CheckFiles(const LoadFlags& flags) {
  std::map<std::string, const char*> flag_of;
  const std::pair<const char*, const std::string*> written[] = {{"--json", &flags.report.json},
                                                                {"--csv", &flags.report.csv},
                                                                {"--html", &flags.report.html},
                                                                {"--record", &flags.record}};
  for (const auto& [flag, file] : written) {
    if (file->empty()) continue;
    const auto [found, is_new] = flag_of.emplace(*file, flag);
    if (is_new) continue;
    return absl::InvalidArgumentError(absl::StrCat(found->second, " and ", flag,
                                                   " name the same file, ", *file,
                                                   ": the second would replace the first"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTogether(const CLI::App& command, const LoadFlags& flags) {
  if (flags.model.empty() == flags.mix.empty())
    return absl::InvalidArgumentError("--model or --mix is required");
  if (absl::Status status = CheckEffects(command, EffectsOf(flags)); !status.ok()) return status;
  if (flags.find_rate && flags.requests > 0 && flags.requests < kFewestForP99) {
    return absl::InvalidArgumentError(absl::StrCat("--requests=", flags.requests,
                                                   ": a 99th percentile needs at least ",
                                                   kFewestForP99, " of them"));
  }
  return CheckFiles(flags);
}

}  // namespace tilewire::client
