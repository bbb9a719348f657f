// SPDX-License-Identifier: Apache-2.0
//
// How often the interval of a search for the highest rate contains the limit, by kind of noise:
// many searches of a noisy server in simulated time. The limit itself is that of a very long load.
//
//   rate_search_bench --searches=200
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "client/load/rate_search.h"
#include "tests/client/simulated_load.h"

namespace tilewire::client {
namespace {

constexpr double kBound = 12;  // of p99, in service times

struct NoiseRow {
  Noise noise;
  bool is_constant = false;  // the gaps between requests
};

constexpr NoiseRow kNoises[] = {
    {{.name = "none"}, true},
    {{.name = "arrivals"}},
    {{.name = "jitter", .jitter = 0.2}},
    {{.name = "pauses", .jitter = 0.2, .pause_every_s = 20, .pause_s = 0.04}},
    {{.name = "long_pauses", .jitter = 0.2, .pause_every_s = 60, .pause_s = 0.2}},
    {{.name = "drift", .jitter = 0.2, .drift = 0.08, .drift_s = 5}},
    {{.name = "all",
      .jitter = 0.2,
      .drift = 0.08,
      .drift_s = 5,
      .pause_every_s = 20,
      .pause_s = 0.04}},
    {{.name = "slow_drift", .jitter = 0.2, .drift = 0.08, .drift_s = 30}}};

struct Flags {
  int searches = 50;
  int64_t answers = 1'000'000;
  double service_ms = 5, time_s = 0, precision = RateSearchOptions().precision;
  absl::Duration bound() const { return absl::Milliseconds(kBound * service_ms); }
  std::string noise;
};

struct Sums {
  int inside = 0, above = 0, below = 0, unconfirmed = 0;
  double width = 0, runs = 0, time_s = 0;
};

void Search(const NoiseRow& row, double limit, const Flags& flags, uint64_t seed, Sums* sums) {
  SimulatedLoad load(flags.service_ms / 1000, row.noise, row.is_constant, flags.bound(), seed);
  // What two callers reach, halved.
  const RateSearchOptions options{.p99 = flags.bound(),
                                  .first_rate = 500 / flags.service_ms,
                                  .precision = flags.precision,
                                  .time = absl::Seconds(flags.time_s)};
  const RateSearchWorld world = load.World();
  const auto result = SearchRate(options, world);
  if (!result.ok() || result->holds == 0) {
    ++sums->unconfirmed;
    return;
  }
  // The limit is known to 1 %.
  const bool is_below = limit < result->holds * 0.99;
  const bool is_above = limit > result->fails * 1.01;
  sums->below += is_below;
  sums->above += is_above;
  sums->inside += !is_below && !is_above;
  sums->width += result->fails / result->holds - 1;
  sums->runs += static_cast<double>(result->probes.size());
  sums->time_s += absl::ToDoubleSeconds(world.now() - absl::UnixEpoch());
}

void Show(const NoiseRow& row, const Flags& flags) {
  const double limit =
      LimitOf(flags.service_ms / 1000, row.noise, row.is_constant, flags.bound(), flags.answers);
  Sums sums;
  for (int i = 0; i < flags.searches; ++i) Search(row, limit, flags, 1000 * i, &sums);
  const double found = std::max(1, flags.searches - sums.unconfirmed);
  std::printf("%-12s %6.1f/s %7.0f %% %6d %6d %6d %8.1f %% %6.0f %7.0f s\n", row.noise.name, limit,
              100.0 * sums.inside / flags.searches, sums.below, sums.above, sums.unconfirmed,
              100 * sums.width / found, sums.runs / found, sums.time_s / found);
}

void Main(const Flags& flags) {
  std::printf("%-12s %8s %9s %6s %6s %6s %10s %6s %9s\n", "noise", "limit", "inside", "below",
              "above", "none", "width", "runs", "time");
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
  app.add_option("--answers", flags.answers, "of each load that the limit is found by");
  app.add_option("--time", flags.time_s, "seconds of a search; 0: as the tool chooses");
  app.add_option("--precision", flags.precision);
  app.add_option("--service_ms", flags.service_ms, "of a request; p99 is to be within 12 of them");
  app.add_option("--noise", flags.noise, "only this kind");
  CLI11_PARSE(app, argc, argv);
  tilewire::client::Main(flags);
}
