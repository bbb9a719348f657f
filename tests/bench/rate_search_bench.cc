// SPDX-License-Identifier: Apache-2.0
//
// How often the interval of a search for the highest rate contains the limit, by kind of noise:
// many searches of a noisy server in simulated time. The limit itself is that of very long loads.
//
//   rate_search_bench --searches=200
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "client/load/search/rate_search.h"
#include "tests/client/simulated_load.h"

namespace tilewire::client {
namespace {

constexpr double kServiceSeconds = 0.005;
constexpr absl::Duration kBound = absl::Milliseconds(60);  // of p99

struct NoiseRow {
  Noise noise;
  double limit = 0;          // by --limits, known to about 0.3 %
  bool is_constant = false;  // the gaps between requests
};

constexpr NoiseRow kNoises[] = {
    {{.name = "none"}, 200.0, true},
    {{.name = "arrivals"}, 162.1},
    {{.name = "jitter", .jitter = 0.2}, 156.6},
    {{.name = "pauses", .jitter = 0.2, .pause_every_s = 20, .pause_s = 0.04}, 155.1},
    {{.name = "long_pauses", .jitter = 0.2, .pause_every_s = 60, .pause_s = 0.2}, 138.8},
    {{.name = "drift", .jitter = 0.2, .drift = 0.08, .drift_s = 5}, 144.9},
    {{.name = "all",
      .jitter = 0.2,
      .drift = 0.08,
      .drift_s = 5,
      .pause_every_s = 20,
      .pause_s = 0.04},
     143.6},
    {{.name = "slow_drift", .jitter = 0.2, .drift = 0.08, .drift_s = 30}, 144.5}};

struct Flags {
  int searches = 50;
  int64_t answers = 1'000'000;
  double time_s = 0, precision = RateSearchOptions().precision;
  std::string noise;
  bool limits = false;
};

struct Sums {
  int inside = 0, above = 0, below = 0, unconfirmed = 0;
  double runs = 0, time_s = 0;
  std::vector<double> widths;  // relative to the lower end

  double MedianWidth() {
    if (widths.empty()) return 0;
    std::nth_element(widths.begin(), widths.begin() + widths.size() / 2, widths.end());
    return widths[widths.size() / 2];
  }
};

void Search(const NoiseRow& row, const Flags& flags, uint64_t seed, Sums* sums) {
  SimulatedLoad load(kServiceSeconds, row.noise, row.is_constant, kBound, seed);
  // Half the rate that two callers reach.
  const RateSearchOptions options{.p99 = kBound,
                                  .first_rate = 0.5 / kServiceSeconds,
                                  .precision = flags.precision,
                                  .time = absl::Seconds(flags.time_s)};
  const RateSearchWorld world = load.World();
  const auto result = SearchRate(options, world);
  if (!result.ok() || result->holds == 0) {
    ++sums->unconfirmed;
    return;
  }
  sums->below += row.limit < result->holds;
  sums->above += row.limit > result->fails;
  sums->inside += result->holds <= row.limit && row.limit <= result->fails;
  sums->widths.push_back(result->fails / result->holds - 1);
  sums->runs += static_cast<double>(result->probes.size());
  sums->time_s += absl::ToDoubleSeconds(world.now() - absl::UnixEpoch());
}

void Show(const NoiseRow& row, const Flags& flags) {
  if (flags.limits) {
    const double limit =
        LimitOf(kServiceSeconds, row.noise, row.is_constant, kBound, flags.answers);
    std::printf("%-12s %6.1f/s\n", row.noise.name, limit);
    return;
  }
  Sums sums;
  for (int i = 0; i < flags.searches; ++i) Search(row, flags, 1000 * i, &sums);
  const double found = std::max(1, flags.searches - sums.unconfirmed);
  std::printf("%-12s %6.1f/s %7.0f %% %6d %6d %6d %8.1f %% %6.0f %7.0f s\n", row.noise.name,
              row.limit, 100.0 * sums.inside / flags.searches, sums.below, sums.above,
              sums.unconfirmed, 100 * sums.MedianWidth(), sums.runs / found, sums.time_s / found);
}

void Main(const Flags& flags) {
  if (!flags.limits) {
    std::printf("%-12s %8s %9s %6s %6s %6s %10s %6s %9s\n", "noise", "limit", "inside", "below",
                "above", "none", "width", "runs", "time");
  }
  for (const NoiseRow& row : kNoises) {
    if (flags.noise.empty() || flags.noise == row.noise.name) Show(row, flags);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace tilewire::client

int main(int argc, char** argv) {
  tilewire::client::Flags flags;
  CLI::App app("How often the interval of a search for the highest rate contains the limit");
  app.add_option("--searches", flags.searches, "for each kind of noise");
  app.add_option("--time", flags.time_s, "seconds of a search; 0: as the tool chooses");
  app.add_option("--precision", flags.precision);
  app.add_option("--noise", flags.noise, "only this kind");
  app.add_flag("--limits", flags.limits, "measure the limits themselves, and search nothing");
  app.add_option("--answers", flags.answers, "of each load that a limit is measured by");
  CLI11_PARSE(app, argc, argv);
  tilewire::client::Main(flags);
}
