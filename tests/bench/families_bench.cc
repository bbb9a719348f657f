// SPDX-License-Identifier: Apache-2.0
//
// Operations of every family, ours against oneDNN's, one thread. The two alternate (A B A B ...),
// so that what disturbs the machine disturbs both; an operation's figure is the median over pairs
// of (their time / our time): above 1 we are faster. Operations that only move a tensor are timed
// against memcpy of as many bytes, too: 1 is the bandwidth of a copy.
//
//   bazel run //tests/bench:families_bench -- --operations $PWD/tests/bench/families.txt
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "engine/base/aligned_buffer.h"
#include "tests/bench/operation.h"
#include "tests/bench/stopwatch.h"
#include "tests/support/random_tensor.h"

namespace tilewire::bench {

std::vector<Operation> ReadOperations(const std::string& path) {
  std::vector<Operation> operations;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Operation operation;
    if (!(words >> operation.family >> operation.name >> operation.kind)) continue;
    for (std::string word; words >> word;) {
      const size_t sign = word.find('=');
      operation.sizes[word.substr(0, sign)] = std::stoll(word.substr(sign + 1));
    }
    operations.push_back(std::move(operation));
  }
  return operations;
}

namespace {

constexpr double kShortestSample = 50e-6;  // seconds: what the clock resolves well

struct Result {
  std::string family;
  double ratio;          // their time / our time
  double share_of_copy;  // memcpy's time / our time; 0 where no tensor is just moved
};

// The least that a move of a tensor can cost.
class Copy final : public RunnableOperation {
 public:
  explicit Copy(int64_t bytes)
      : from_(*AlignedBuffer::Allocate(bytes)), to_(*AlignedBuffer::Allocate(bytes)) {
    testing::FillGarbage(from_.data(), from_.size(), 1);
    testing::FillGarbage(to_.data(), to_.size(), 2);
  }
  void Run() override { std::memcpy(to_.data(), from_.data(), to_.size()); }
  std::string name() const override { return "memcpy"; }

 private:
  AlignedBuffer from_, to_;
};

Result Measure(const Operation& operation, cpu::Isa max_isa, double seconds) {
  const std::unique_ptr<RunnableOperation> theirs = MakePeer(operation, max_isa);
  const std::unique_ptr<RunnableOperation> ours = MakeOurs(operation, max_isa);
  std::unique_ptr<RunnableOperation> copy;
  if (ours->MovedBytes() > 0) copy = std::make_unique<Copy>(ours->MovedBytes());
  ours->Run();
  const double once = std::max(1e-7, Seconds([&] { ours->Run(); }));
  const int runs = std::clamp(static_cast<int>(kShortestSample / once), 1, 100);
  const auto sample = [&](RunnableOperation* side) {
    return Seconds([&] {
      for (int i = 0; i < runs; ++i) side->Run();
    });
  };
  std::vector<double> our_times, their_times, ratios, shares;
  for (double spent = 0; spent < seconds || ratios.size() < 5;) {
    our_times.push_back(sample(ours.get()));
    their_times.push_back(sample(theirs.get()));
    ratios.push_back(their_times.back() / our_times.back());
    shares.push_back(copy == nullptr ? 0 : sample(copy.get()) / our_times.back());
    spent += our_times.back() + their_times.back();
  }
  const Result result = {operation.family, Median(ratios), Median(shares)};
  std::printf("%-14s %-26s %10.2f %10.2f %7.3f %7s  %s, %s\n", operation.family.c_str(),
              operation.name.c_str(), 1e6 * Median(our_times) / runs,
              1e6 * Median(their_times) / runs, result.ratio,
              copy == nullptr ? "" : absl::StrFormat("%.3f", result.share_of_copy).c_str(),
              ours->name().c_str(), theirs->name().c_str());
  std::fflush(stdout);
  return result;
}

// Median, geometric mean and least of some figures.
void PrintFigures(const char* what, const std::vector<double>& figures) {
  double log_sum = 0;
  for (double figure : figures) log_sum += std::log(figure);
  std::printf("   %s median %.3f   geometric mean %.3f   min %.3f", what, Median(figures),
              std::exp(log_sum / figures.size()),
              *std::min_element(figures.begin(), figures.end()));
}

void Summarize(const std::string& family, const std::vector<Result>& results) {
  std::vector<double> ratios, shares;
  for (const Result& result : results) {
    if (result.family != family) continue;
    ratios.push_back(result.ratio);
    if (result.share_of_copy > 0) shares.push_back(result.share_of_copy);
  }
  std::printf("family %-14s %3zu operations", family.c_str(), ratios.size());
  PrintFigures("ratio:", ratios);
  if (!shares.empty()) PrintFigures("of copy:", shares);
  std::printf("\n");
}

int Main(int argc, char** argv) {
  omp_set_num_threads(1);  // oneDNN's threads; too late for OMP_NUM_THREADS, which was read at load
  std::string operations = "tests/bench/families.txt", max_isa = "best", filter;
  double seconds = 0.1;
  CLI::App app("operations of every family, ours against oneDNN's, one thread");
  app.add_option("--operations", operations, "list of operations")
      ->check(CLI::ExistingFile)
      ->capture_default_str();
  app.add_option("--max_isa", max_isa, "ours may use: avx2, avx512, best")->capture_default_str();
  app.add_option("--seconds", seconds, "for each operation")->capture_default_str();
  app.add_option("--filter", filter, "only where family and name contain this");
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<cpu::Isa> isa = cpu::ParseIsa(max_isa);
  if (!isa.ok()) {
    std::fprintf(stderr, "--max_isa: %s\n", isa.status().ToString().c_str());
    return 2;
  }
  std::printf("%-14s %-26s %10s %10s %7s %7s  %s\n", "family", "operation", "us", "oneDNN us",
              "ratio", "of copy", "implementations");
  std::vector<Result> results;
  std::vector<std::string> families;
  for (const Operation& operation : ReadOperations(operations)) {
    if (!absl::StrContains(operation.family + " " + operation.name, filter)) continue;
    results.push_back(Measure(operation, *isa, seconds));
    if (families.empty() || families.back() != operation.family) {
      families.push_back(operation.family);
    }
  }
  for (const std::string& family : families) Summarize(family, results);
  return 0;
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) { return tilewire::bench::Main(argc, argv); }
