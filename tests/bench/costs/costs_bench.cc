// SPDX-License-Identifier: Apache-2.0
//
// Every row of convolution that says what it costs beside what it takes, on this CPU, one thread:
// all rows that take a shape run in turns, each in the layouts that it chose, with weights that
// come from memory as in a whole model. Cycles are those of a loop of FMAs of 32 bytes at the
// machine's rate, run in between.
//
//   bazel run //tests/bench:costs_bench -- --shapes $PWD/tests/bench/resnet50_convs.txt
//
// A row is marked where its estimate is off by more than 20 %, and a shape where the row that is
// chosen takes over 10 % longer than the fastest. Figures are printed, not judged.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/cpu/machine.h"
#include "engine/jit/fma_peak.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/convolution/convolution.h"
#include "tests/bench/filled_arguments.h"
#include "tests/bench/shape_list.h"
#include "tests/bench/stopwatch.h"

namespace tilewire::bench {
namespace {

using Row = Implementation<ConvolutionDesc>;

ConvolutionDesc DescOf(const Shape& s) {
  const auto open = [](const Dims& dims) { return *MemoryDesc::CreateAny(dims, DataType::kF32); };
  Dims weights = {s.oc / s.groups, s.ic / s.groups, s.kernel, s.kernel};
  if (s.groups > 1) weights.insert(weights.begin(), s.groups);
  ConvolutionDesc desc;
  desc.src = open({s.batch, s.ic, s.in, s.in});
  desc.dst = open({s.batch, s.oc, s.out, s.out});
  desc.bias = open({s.oc});
  desc.weights = open(weights);
  desc.strides = {s.stride, s.stride};
  desc.dilations = {0, 0};
  desc.padding_left = desc.padding_right = {s.padding, s.padding};
  return desc;
}

Attributes AttributesFor(Precision precision) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  (void)attributes.post_ops.Append(EltwisePostOp{});
  attributes.precision = precision;
  return attributes;
}

// Copies of weights, of which each run reads the next, so many that caches do not hold them.
class Weights {
 public:
  Weights(const MemoryDesc& desc, int64_t all_bytes) {
    const int64_t bytes = std::max<int64_t>(64, desc.SizeBytes());
    const int64_t count = std::max<int64_t>(2, all_bytes / bytes);
    FilledArguments first;
    first.Add(kArgWeights, desc);
    for (int64_t i = 0; i < count; ++i) {
      copies_.push_back(*AlignedBuffer::Allocate(desc.SizeBytes()));
      std::memcpy(copies_.back().data(), first.args().Find(kArgWeights), desc.SizeBytes());
    }
  }
  const std::byte* Next() { return copies_[next_++ % copies_.size()].data(); }

 private:
  std::vector<AlignedBuffer> copies_;
  size_t next_ = 0;
};

class Subject {
 public:
  Subject(std::shared_ptr<const Primitive> primitive, int64_t weights_bytes)
      : primitive_(std::move(primitive)), weights_(primitive_->Desc(kArgWeights), weights_bytes) {
    for (const int arg : {kArgSrc, kArgBias, kArgDst}) arguments_.Add(arg, primitive_->Desc(arg));
    arguments_.Add(kArgScratchpad, primitive_->ScratchpadDesc());
  }

  double Run() {
    ExecuteArgs args = arguments_.args();
    args.Set(kArgWeights, weights_.Next());
    times_.push_back(Seconds([&] {
      if (!primitive_->Execute(args, threading::Team::Serial()).ok()) std::exit(1);
    }));
    return times_.back();
  }

  std::string name() const { return std::string(primitive_->name()); }
  double seconds() const { return Median(times_); }
  // Estimated, without the row's handicap.
  double cycles() const { return primitive_->info().creation.cycles; }

 private:
  const std::shared_ptr<const Primitive> primitive_;
  Weights weights_;
  FilledArguments arguments_;
  std::vector<double> times_;
};

struct Findings {
  int rows = 0, off = 0, shapes = 0, losing = 0;
};

std::vector<std::unique_ptr<Subject>> SubjectsOf(const Shape& shape, Precision precision,
                                                 cpu::Isa isa, int64_t weights_bytes) {
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const Row& row : ConvolutionImplementations()) {
    if (row.cost == nullptr || !isa.Includes(row.isa)) continue;
    auto primitive = CreateConvolution(DescOf(shape), AttributesFor(precision),
                                       {.max_isa = isa, .only = row.name});
    if (primitive.ok())
      subjects.push_back(std::make_unique<Subject>(*std::move(primitive), weights_bytes));
  }
  return subjects;
}

// Cycles per second at the clock of the moment.
double Clock() {
  const double flops =
      2.0 * jit::VectorUnit::Of(cpu::Isa::kAvx2).lanes() * cpu::ThisMachine().fmas_of_32_bytes;
  return 1e9 * jit::MeasureFmaPeak(cpu::Isa::kAvx2) / flops;
}

void Print(const Shape& shape, const std::vector<std::unique_ptr<Subject>>& subjects,
           absl::string_view chosen, double clock, Findings* findings) {
  constexpr double kMostOff = 1.2, kMostLost = 1.1;
  double fastest = subjects.front()->seconds(), taken = 0;
  for (const auto& subject : subjects) {
    fastest = std::min(fastest, subject->seconds());
    if (subject->name() == chosen) taken = subject->seconds();
  }
  for (const auto& subject : subjects) {
    const double cycles = subject->seconds() * clock, ratio = subject->cycles() / cycles;
    const bool off = std::max(ratio, 1 / ratio) > kMostOff;
    ++findings->rows;
    findings->off += off ? 1 : 0;
    absl::PrintF("| %s | `%s` | %.0f | %.0f | %.2f%s | %s |\n", shape.name, subject->name(),
                 subject->cycles() / 1e3, cycles / 1e3, ratio, off ? " off" : "",
                 subject->name() == chosen ? "chosen" : "");
  }
  ++findings->shapes;
  if (taken > kMostLost * fastest) {
    ++findings->losing;
    absl::PrintF("| %s | **the choice takes %.2f times the fastest row** | | | | |\n", shape.name,
                 taken / fastest);
  }
  std::fflush(stdout);
}

void Measure(const Shape& shape, Precision precision, cpu::Isa isa, double seconds,
             int64_t weights_bytes, Findings* findings) {
  const auto chosen = CreateConvolution(DescOf(shape), AttributesFor(precision), {.max_isa = isa});
  const auto subjects = SubjectsOf(shape, precision, isa, weights_bytes);
  if (!chosen.ok() || subjects.empty()) return;
  std::vector<double> clocks;
  double spent = 0;
  for (int runs = 0; runs < 3 || (spent < seconds && runs < 1000); ++runs) {
    if (runs % 8 == 0) clocks.push_back(Clock());
    for (const auto& subject : subjects) spent += subject->Run();
  }
  Print(shape, subjects, (*chosen)->name(), Median(clocks), findings);
}

// Twice the largest cache, but no more than what comes from memory even where that cache is larger:
// one of hundreds of MiB serves many machines, of which this one has a part. Of 480 MiB that a
// virtual machine of two cores was shown, 64 MiB came at a cache's rate, and 128 at the memory's.
int64_t MoreThanCaches() {
  constexpr int64_t kMost = int64_t{256} << 20;
  return std::min(kMost, 2 * *absl::c_max_element(cpu::ThisMachine().cache_bytes));
}

// The "model name" of /proc/cpuinfo.
std::string ModelName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// The CPU, and which instruction sets of the tree it has and lacks.
void Describe() {
  const cpu::Machine& machine = cpu::ThisMachine();
  std::vector<std::string> has, lacks;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(cpu::IsaNames(","), ',')))
    (cpu::BestIsa().Includes(*cpu::ParseIsa(name)) ? has : lacks).push_back(name);
  const auto& [first, second, third] = machine.cache_bytes;
  absl::PrintF("CPU: %s, described as: %s\n", ModelName(), machine.kind);
  absl::PrintF("caches: %d, %d and %d KiB; FMAs of 32 bytes per cycle: %g, of 64 bytes: %g\n",
               first >> 10, second >> 10, third >> 10, machine.fmas_of_32_bytes,
               machine.fmas_of_64_bytes);
  absl::PrintF("has: %s\nlacks: %s\n", absl::StrJoin(has, ", "),
               lacks.empty() ? "nothing" : absl::StrJoin(lacks, ", "));
}

int Main(int argc, char** argv) {
  std::string shapes = "tests/bench/resnet50_convs.txt", filter, max_isa = "best",
              precision = "exact";
  double seconds = 0.5;
  int64_t weights_mb = 0;
  bool describe = false;
  CLI::App app("rows of convolution beside their estimated costs, one thread");
  app.add_option("--shapes", shapes, "list of shapes")
      ->check(CLI::ExistingFile)
      ->capture_default_str();
  app.add_option("--filter", filter, "only shapes whose name contains this");
  app.add_option("--max_isa", max_isa, "avx2, avx512, best")->capture_default_str();
  app.add_option("--precision", precision, "exact, fast, bf16")->capture_default_str();
  app.add_option("--seconds", seconds, "for each shape")->capture_default_str();
  app.add_option(
      "--weights_mb", weights_mb,
      "of copies of weights that runs read in turn; 0: twice the largest cache, at most 256");
  app.add_flag("--describe", describe, "only say which CPU this is, and what it has and lacks");
  CLI11_PARSE(app, argc, argv);
  if (describe) {
    Describe();
    return 0;
  }
  const absl::StatusOr<cpu::Isa> isa = cpu::ParseIsa(max_isa);
  const absl::StatusOr<Precision> permitted = ParsePrecision(precision);
  if (!isa.ok() || !permitted.ok()) {
    std::fprintf(stderr, "%s\n", (isa.ok() ? permitted.status() : isa.status()).ToString().c_str());
    return 2;
  }
  const int64_t weights_bytes = weights_mb > 0 ? weights_mb << 20 : MoreThanCaches();
  Findings findings;
  absl::PrintF(
      "| shape | row | estimated kilocycles | measured | ratio | |\n|---|---|---|---|---|---|\n");
  for (const Shape& shape : ReadShapes(shapes)) {
    if (absl::StrContains(shape.name, filter))
      Measure(shape, *permitted, *isa & cpu::BestIsa(), seconds, weights_bytes, &findings);
  }
  absl::PrintF(
      "\n%s, up to %s, %s: %d of %d estimates are off by more than 20 %%, %d of %d choices "
      "lose more than 10 %%\n",
      cpu::ThisMachine().kind, max_isa, precision, findings.off, findings.rows, findings.losing,
      findings.shapes);
  return 0;
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) { return tilewire::bench::Main(argc, argv); }
