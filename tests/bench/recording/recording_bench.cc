// SPDX-License-Identifier: Apache-2.0
//
// The price that a request pays to be seen: nanoseconds of a core for its flight record, its counts
// and histograms, and for each row of its plan, while so many threads record at the same time. A
// figure is the median of 21 rounds; beside it stand their quartiles.
//
//   bazel run //tests/bench:recording_bench
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "service/models/statistics.h"
#include "service/observe/flight_record.h"
#include "tests/bench/stopwatch.h"

namespace tilewire::bench {
namespace {

using service::FlightRecord;
using service::FlightRecorder;
using service::VersionStatistics;

constexpr int kRounds = 21;

struct Cost {
  std::string what;
  std::function<void(int call)> record;
};

// Nanoseconds of a core for one call, by round, with `threads` of them at once.
std::vector<double> Measure(const Cost& cost, int threads, int calls) {
  std::vector<double> times(static_cast<size_t>(threads) * kRounds);
  std::vector<std::thread> team;
  for (int thread = 0; thread < threads; ++thread) {
    team.emplace_back([&, thread] {
      for (int round = 0; round < kRounds; ++round) {
        const double taken = Seconds([&] {
          for (int call = 0; call < calls; ++call) cost.record(call);
        });
        times[static_cast<size_t>(thread) * kRounds + round] = taken / calls * 1e9;
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  std::sort(times.begin(), times.end());
  return times;
}

// Different durations, so that no single bucket of a histogram is met.
absl::Duration Varied(int call) { return absl::Microseconds(50 + call % 1000); }

void Run(int calls) {
  FlightRecorder flights;
  VersionStatistics statistics(1);
  struct alignas(64) Row {
    std::atomic<int64_t> sum{0};
  } rows[2];
  std::atomic<uint32_t> next_row{0};
  const std::vector<Cost> costs = {
      {"a flight record",
       [&](int call) {
         flights.Add({.arrival_ns = call, .run_ns = 1000, .model = 1}, "0123456789abcdef");
       }},
      {"counts and histograms of a request",
       [&](int call) {
         const absl::Duration varied = Varied(call);
         statistics.Succeeded(1, {varied, varied, varied, varied, varied}, varied * 5);
       }},
      {"the time of a row of a plan",
       [&](int) {
         thread_local std::atomic<int64_t>* const sum = &rows[next_row.fetch_add(1) % 2].sum;
         const auto now = std::chrono::steady_clock::now().time_since_epoch();
         sum->fetch_add(now.count(), std::memory_order_relaxed);
       }},
  };
  for (const Cost& cost : costs) {
    for (const int threads : {1, 2}) {
      const std::vector<double> times = Measure(cost, threads, calls);
      std::printf("%-36s %d threads %7.1f ns (%.1f to %.1f)\n", cost.what.c_str(), threads,
                  times[times.size() / 2], times[times.size() / 4], times[times.size() * 3 / 4]);
    }
  }
}

int Main(int argc, char** argv) {
  CLI::App app("What it costs a request to be seen");
  int calls = 200000;
  app.add_option("--calls", calls, "of each round")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  Run(calls);
  return 0;
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) { return tilewire::bench::Main(argc, argv); }
