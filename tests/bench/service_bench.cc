// SPDX-License-Identifier: Apache-2.0
//
// The cost of the service above the engine, measured in turns within one run:
//
//   latency      client p50 with one caller, the engine's own p50, and the p50 of a bare server of
//                the same gRPC that answers as many bytes and looks at nothing. "Above" is what is
//                left of the first when the other two are taken away
//   caller       p50 of one caller of each server: bare ones and, if --onnxruntime names its
//                library, lean ones around ONNX Runtime, on gRPC's callbacks and on completion
//                queues; and ours over theirs, the median of the turns
//   rate         calls per second of eight callers, for the same servers
//   allocations  in the serving process per ModelInfer, gRPC's own included, beside the bare
//                server's
//   order        p99 over p50 of eight callers of one model, beside the other servers'
//   isolation    with --batch: p99 of one caller beside two that send batches, over its p99 alone,
//                beside the bare server's, which computes nothing
//   throughput   saturated by callers on the same cores, as a share of the engine's alone, and of
//                what the engine alone would do on what the callers leave of the cores
//
//   bazel run //tests/bench:service_bench -- --model=$PWD/resnet18.onnx
//
// Without a model: an average over 600 KB for the first two, some convolutions for the last.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "engine/threading/arena.h"
#include "grpcpp/grpcpp.h"
#include "tests/bench/service_sides.h"
#include "tests/bench/service_subject.h"
#include "tests/bench/stopwatch.h"

namespace tilewire::bench {
namespace {

struct Options {
  std::string model, library;
  int rounds = 20, calls = 50, threads = 0, callers = 0, batch = 0;
  double seconds = 2;
};

constexpr int kManyCallers = 8;

double Microseconds(absl::Duration time) { return absl::ToDoubleMicroseconds(time); }

// The median of ours over theirs, turn by turn.
double MedianRatio(const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / theirs[i]);
  return Median(ratios);
}

// The median of `calls` calls of `call`, in microseconds.
absl::StatusOr<double> P50(int calls, const std::function<absl::Status()>& call) {
  absl::SleepFor(absl::Milliseconds(10));  // threads of the side before stop looking for work
  std::vector<double> times;
  for (int i = 0; i < calls + 2; ++i) {
    const absl::Time start = absl::Now();
    ABSL_RETURN_IF_ERROR(call());
    if (i >= 2) times.push_back(Microseconds(absl::Now() - start));
  }
  return Median(times);
}

// The p50s of the servers and of the engine alone, in turns, and what our server and the bare one
// allocate.
class Latency {
 public:
  Latency(const Options& options, const Subject& subject, const std::vector<Side>& sides)
      : options_(options), subject_(subject) {
    for (const Side& side : sides) turns_.emplace_back(side);
  }

  absl::Status Measure() {
    Turns& ours = turns_[0];
    ABSL_ASSIGN_OR_RETURN(const int64_t answer_bytes, ours.caller.Call(subject_.request));
    for (const Turns& turns : turns_) turns.side->process->SetBareAnswer(answer_bytes);
    std::vector<double> engine, above;
    const Turns& bare = *std::find_if(turns_.begin(), turns_.end(),
                                      [](const Turns& t) { return t.side->name == kBare; });
    for (int round = -1; round < options_.rounds; ++round) {  // one warms up
      ABSL_ASSIGN_OR_RETURN(const double own, P50(options_.calls, [&] { return subject_.Run(); }));
      for (Turns& turns : turns_) ABSL_RETURN_IF_ERROR(Turn(&turns));
      if (round < 0) {
        for (Turns& turns : turns_) turns.Forget();
        continue;
      }
      engine.push_back(own);
      above.push_back(ours.p50s.back() - own - bare.p50s.back());
    }
    std::printf("latency      server %.0f us, engine %.0f us, bare %.0f us: above %.0f us\n",
                Median(ours.p50s), Median(engine), Median(bare.p50s), Median(above));
    for (const Turns& turns : turns_) {
      std::printf("caller       %-26s %8.0f us, server over it %.2f\n", turns.side->name.c_str(),
                  Median(turns.p50s), MedianRatio(ours.p50s, turns.p50s));
    }
    PrintAllocations(ours, bare);
    return absl::OkStatus();
  }

 private:
  struct Turns {
    explicit Turns(const Side& side) : side(&side), caller(side.process->port()) {}
    void Forget() { p50s.clear(), allocations = large = 0; }

    const Side* side;
    Caller caller;
    std::vector<double> p50s;
    int64_t allocations = 0, large = 0;
  };

  absl::Status Turn(Turns* turns) const {
    const AllocationCounts& counts = turns->side->process->allocations();
    const int64_t all = counts.all, large = counts.large;
    ABSL_ASSIGN_OR_RETURN(turns->p50s.emplace_back(), P50(options_.calls, [&] {
                            return turns->caller.Call(subject_.request).status();
                          }));
    turns->allocations += counts.all - all;
    turns->large += counts.large - large;
    return absl::OkStatus();
  }

  void PrintAllocations(const Turns& ours, const Turns& bare) const {
    const double calls = static_cast<double>(options_.rounds) * (options_.calls + 2);
    std::printf(
        "allocations  server %.1f, of 128 KB and more %.2f; bare %.1f, %.2f\n",
        static_cast<double>(ours.allocations) / calls, static_cast<double>(ours.large) / calls,
        static_cast<double>(bare.allocations) / calls, static_cast<double>(bare.large) / calls);
  }

  const Options& options_;
  const Subject& subject_;
  std::vector<Turns> turns_;
};

// Calls per second when `callers` threads call one after the other, on threads of `arena` unless it
// is null; the share of all cores that this process took is added to `load`.
absl::StatusOr<double> Throughput(int callers, absl::Duration time, threading::Arena* arena,
                                  const std::function<absl::Status(int caller)>& call,
                                  double* load) {
  const auto cpu_seconds = [] {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  };
  std::vector<int64_t> calls(callers);
  std::vector<absl::Status> statuses(callers);
  const double cpu_before = cpu_seconds();
  const absl::Time start = absl::Now();
  absl::BlockingCounter callers_left(callers);
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i) {
    const auto call_in_turn = [&, i] {
      while (statuses[i].ok() && absl::Now() - start < time) {
        statuses[i] = call(i);
        ++calls[i];
      }
      callers_left.DecrementCount();
    };
    if (arena != nullptr) {
      arena->Enqueue(call_in_turn);
    } else {
      threads.emplace_back(call_in_turn);
    }
  }
  callers_left.Wait();
  for (std::thread& thread : threads) thread.join();
  const double taken = absl::ToDoubleSeconds(absl::Now() - start);
  *load += (cpu_seconds() - cpu_before) / taken / std::thread::hardware_concurrency();
  for (const absl::Status& status : statuses) ABSL_RETURN_IF_ERROR(status);
  return static_cast<double>(std::accumulate(calls.begin(), calls.end(), int64_t{0})) / taken;
}

// The port of the server of this name, or 0.
int PortOf(const std::vector<Side>& sides, const std::string& name) {
  for (const Side& side : sides) {
    if (side.name == name) return side.process->port();
  }
  return 0;
}

std::vector<Caller> CallersOf(int count, int port) {
  std::vector<Caller> callers;
  for (int i = 0; i < count; ++i) callers.emplace_back(port);
  return callers;
}

absl::Status MeasureRates(const Options& options, const Subject& subject,
                          const std::vector<Side>& sides) {
  std::vector<std::vector<Caller>> callers;
  for (const Side& side : sides) callers.push_back(CallersOf(kManyCallers, side.process->port()));
  std::vector<std::vector<double>> rates(sides.size());
  const absl::Duration turn = absl::Seconds(options.seconds / options.rounds);
  double ignored = 0;
  for (int round = -1; round < options.rounds; ++round) {  // one warms up
    for (size_t i = 0; i < sides.size(); ++i) {
      const auto call = [&](int k) { return callers[i][k].Call(subject.request).status(); };
      absl::SleepFor(absl::Milliseconds(10));
      ABSL_ASSIGN_OR_RETURN(const double rate,
                            Throughput(kManyCallers, turn, nullptr, call, &ignored));
      if (round >= 0) rates[i].push_back(rate);
    }
  }
  for (size_t i = 0; i < sides.size(); ++i) {
    std::printf("rate         %-26s %8.0f /s, server over it %.2f\n", sides[i].name.c_str(),
                Median(rates[i]), MedianRatio(rates[0], rates[i]));
  }
  return absl::OkStatus();
}

absl::Status MeasureThroughput(const Options& options, const Subject& subject, Engine* engine,
                               int port) {
  const int threads = engine->options().threads;
  const int callers = options.callers > 0 ? options.callers : 2 * threads;
  std::vector<Caller> all = CallersOf(callers, port);
  const auto call_server = [&](int i) { return all[i].Call(subject.request).status(); };
  const auto call_engine = [&](int) { return subject.Run(); };
  const absl::Duration turn = absl::Seconds(options.seconds / options.rounds);
  double load = 0, ignored = 0;
  std::vector<double> server, alone, shares;
  for (int round = -1; round < options.rounds; ++round) {  // one warms up
    double* const counted = round < 0 ? &ignored : &load;
    ABSL_ASSIGN_OR_RETURN(const double ours,
                          Throughput(callers, turn, nullptr, call_server, counted));
    absl::SleepFor(absl::Milliseconds(10));
    ABSL_ASSIGN_OR_RETURN(const double own,
                          Throughput(threads, turn, &engine->arena(), call_engine, &ignored));
    absl::SleepFor(absl::Milliseconds(10));
    if (round < 0) continue;
    server.push_back(ours);
    alone.push_back(own);
    shares.push_back(ours / own);
  }
  std::printf(
      "throughput   server %.1f/s with %d callers, who took %.1f %% of the cores; engine %.1f/s: "
      "share %.3f, of what the callers leave %.3f\n",
      Median(server), callers, 100 * load / options.rounds, Median(alone), Median(shares),
      Median(shares) / (1 - load / options.rounds));
  return absl::OkStatus();
}

// The times of all calls of a turn, sorted, where each caller calls one after the other.
absl::StatusOr<std::vector<double>> TimesOf(const Options& options, const Subject& subject,
                                            std::vector<Caller>* callers) {
  const int count = static_cast<int>(callers->size());
  std::vector<std::vector<double>> times(count);
  const auto timed_call = [&](int i) {
    const absl::Time start = absl::Now();
    absl::Status status = (*callers)[i].Call(subject.request).status();
    times[i].push_back(Microseconds(absl::Now() - start));
    return status;
  };
  double ignored = 0;
  const absl::Duration turn = absl::Seconds(options.seconds / options.rounds);
  ABSL_RETURN_IF_ERROR(Throughput(count, turn, nullptr, timed_call, &ignored).status());
  std::vector<double> all;
  for (const std::vector<double>& one : times) all.insert(all.end(), one.begin(), one.end());
  std::sort(all.begin(), all.end());
  return all;
}

double P99(const std::vector<double>& sorted) { return sorted[sorted.size() * 99 / 100]; }

// p99 over p50 of callers that all ask one server, the median of the rounds.
absl::StatusOr<double> Spread(const Options& options, const Subject& subject, int port) {
  std::vector<Caller> callers = CallersOf(kManyCallers, port);
  std::vector<double> ratios;
  for (int round = 0; round < options.rounds; ++round) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<double> times, TimesOf(options, subject, &callers));
    ratios.push_back(P99(times) / times[times.size() / 2]);
  }
  return Median(ratios);
}

// p99 of one caller beside two that send big batches, over its p99 alone; the median of the rounds.
absl::StatusOr<double> Isolation(const Options& options, const Subject& small, const Subject& big,
                                 int port) {
  std::vector<Caller> one = CallersOf(1, port), two = CallersOf(2, port);
  std::vector<double> ratios;
  for (int round = 0; round < options.rounds; ++round) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<double> alone, TimesOf(options, small, &one));
    std::atomic<bool> ended{false};
    std::vector<std::thread> threads;
    for (Caller& caller : two) {
      threads.emplace_back([&] {
        while (!ended && caller.Call(big.request).ok()) continue;
        ended = true;
      });
    }
    absl::SleepFor(absl::Milliseconds(300));  // until the batches have come
    const absl::StatusOr<std::vector<double>> beside = TimesOf(options, small, &one);
    const bool failed = ended.exchange(true);
    for (std::thread& thread : threads) thread.join();
    ABSL_RETURN_IF_ERROR(beside.status());
    if (failed) return absl::InternalError("a big batch was refused");
    ratios.push_back(P99(*beside) / P99(alone));
  }
  return Median(ratios);
}

absl::Status MeasureIsolation(const Options& options, const Subject& small, const Subject& big,
                              const std::vector<Side>& sides) {
  ABSL_ASSIGN_OR_RETURN(const double ours, Isolation(options, small, big, PortOf(sides, kOurs)));
  ABSL_ASSIGN_OR_RETURN(const double bare, Isolation(options, small, big, PortOf(sides, kBare)));
  std::printf(
      "isolation    p99 beside two callers of batches of %d over p99 alone: server %.2f, "
      "bare %.2f\n",
      options.batch, ours, bare);
  return absl::OkStatus();
}

absl::Status MeasureOrder(const Options& options, const Subject& subject,
                          const std::vector<Side>& sides) {
  std::printf("order        p99 over p50 of %d callers:", kManyCallers);
  for (const char* name : {kOurs, kBare, kLean}) {
    const int port = PortOf(sides, name);
    if (port == 0) continue;
    ABSL_ASSIGN_OR_RETURN(const double spread, Spread(options, subject, port));
    std::printf("%s %s %.2f", name == kOurs ? "" : ";", name, spread);
  }
  std::printf("\n");
  return absl::OkStatus();
}

absl::Status Measure(const Options& options) {
  const Repository repository(options.model);
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  ABSL_ASSIGN_OR_RETURN(const std::vector<Side> sides,
                        StartSides({repository.path(), threads, options.library,
                                    repository.FileOf(repository.small())}));
  ABSL_ASSIGN_OR_RETURN(const auto engine, Engine::Create({.threads = threads}));
  ABSL_ASSIGN_OR_RETURN(const Subject small,
                        LoadSubject(engine.get(), repository, repository.small()));
  ABSL_RETURN_IF_ERROR(Latency(options, small, sides).Measure());
  ABSL_RETURN_IF_ERROR(MeasureRates(options, small, sides));
  ABSL_RETURN_IF_ERROR(MeasureOrder(options, small, sides));
  if (options.batch > 0) {
    ABSL_ASSIGN_OR_RETURN(const Subject big,
                          LoadSubject(engine.get(), repository, repository.small(), options.batch));
    ABSL_RETURN_IF_ERROR(MeasureIsolation(options, small, big, sides));
  }
  ABSL_ASSIGN_OR_RETURN(const Subject large,
                        LoadSubject(engine.get(), repository, repository.large()));
  return MeasureThroughput(options, large, engine.get(), PortOf(sides, kOurs));
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as the server does
  tilewire::bench::Options options;
  CLI::App app{"What the service costs above the engine"};
  app.add_option("--model", options.model, "ONNX file of one f32 input");
  app.add_option("--onnxruntime", options.library, "libonnxruntime.so, for a server around it")
      ->envname("ONNXRUNTIME_LIBRARY");
  app.add_option("--rounds", options.rounds, "turns of each side")->check(CLI::PositiveNumber);
  app.add_option("--calls", options.calls, "calls of a turn")->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "of throughput, each side")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "compute threads; 0: all cores");
  app.add_option("--batch", options.batch, "of the callers beside a single one; 0: not measured")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--callers", options.callers, "of throughput; 0: two per thread");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = tilewire::bench::Measure(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
