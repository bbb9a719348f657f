// SPDX-License-Identifier: Apache-2.0
//
// Convolutions with bias and relu, f32, bf16 or u8 x s8 to u8, ours against oneDNN's, one thread,
// each in the layouts it chose. The two alternate (A B A B ...), so that what disturbs the machine
// disturbs both; a shape's figure is the median over pairs of (their time / our time): above 1 we
// are faster. The share of peak is against a loop of FMAs run in between; VNNI multiplies four
// times as much, and matrix tiles 32 times. Where there are tiles, pairs are counted apart by what
// the core's other hardware thread does (core_state.h), and those in neither state are left out
// unless there are no others.
//
//   bazel run //tests/bench:convolution_bench -- --shapes $PWD/tests/bench/resnet50_convs.txt
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "engine/jit/fma_peak.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/reorder/reorder.h"
#include "tests/bench/core_state.h"
#include "tests/bench/filled_arguments.h"
#include "tests/bench/onednn/convolution.h"
#include "tests/bench/shape_list.h"
#include "tests/bench/stopwatch.h"

namespace tilewire::bench {
namespace {

// Limits on our side.
struct Allowed {
  cpu::Isa max_isa;
  ConvolutionAlgorithm algorithm;
  Precision precision;
};

DataType ActivationOf(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kU8S8:
      return DataType::kU8;
    case Arithmetic::kBf16:
      return DataType::kBf16;
    default:
      return DataType::kF32;
  }
}

ConvolutionDesc DescOf(const Shape& s, DataType src, DataType dst, ConvolutionAlgorithm algorithm) {
  const DataType weight = src == DataType::kU8 ? DataType::kS8 : DataType::kF32;
  ConvolutionDesc desc;
  desc.algorithm = algorithm;
  desc.src = *MemoryDesc::CreateAny({s.batch, s.ic, s.in, s.in}, src);
  desc.dst = *MemoryDesc::CreateAny({s.batch, s.oc, s.out, s.out}, dst);
  desc.bias = *MemoryDesc::CreateAny({s.oc}, DataType::kF32);
  desc.weights = s.groups > 1
                     ? *MemoryDesc::CreateAny(
                           {s.groups, s.oc / s.groups, s.ic / s.groups, s.kernel, s.kernel}, weight)
                     : *MemoryDesc::CreateAny({s.oc, s.ic, s.kernel, s.kernel}, weight);
  desc.strides = {s.stride, s.stride};
  desc.dilations = {0, 0};
  desc.padding_left = desc.padding_right = {s.padding, s.padding};
  return desc;
}

// Our primitive with buffers in the layouts it chose. Contents are random: layouts do not matter to
// the time.
class OurConvolution {
 public:
  OurConvolution(const Shape& shape, Arithmetic arithmetic, const Allowed& allowed)
      : max_isa_(allowed.max_isa) {
    Attributes attributes;
    attributes.scratchpad_mode = ScratchpadMode::kUser;
    (void)attributes.post_ops.Append(EltwisePostOp{});
    attributes.precision = arithmetic == Arithmetic::kBf16 ? Precision::kBf16 : allowed.precision;
    if (arithmetic == Arithmetic::kU8S8)
      attributes.output_scales = {2, std::vector<float>(shape.oc, 1e-3f)};
    absl::StatusOr<std::shared_ptr<const Primitive>> primitive;
    const DataType activation = ActivationOf(arithmetic);
    // First layers read f32, as in a model.
    const bool is_first = arithmetic == Arithmetic::kBf16 && shape.ic < 16;
    const ConvolutionDesc desc =
        DescOf(shape, is_first ? DataType::kF32 : activation, activation, allowed.algorithm);
    create_seconds_ =
        Seconds([&] { primitive = CreateConvolution(desc, attributes, {.max_isa = max_isa_}); });
    if (!primitive.ok()) {
      std::fprintf(stderr, "%s: %s\n", shape.name.c_str(), primitive.status().ToString().c_str());
      std::exit(1);
    }
    primitive_ = *std::move(primitive);
    for (int arg : {kArgSrc, kArgWeights, kArgBias, kArgDst})
      arguments_.Add(arg, primitive_->Desc(arg));
    arguments_.Add(kArgScratchpad, primitive_->ScratchpadDesc());
  }

  void Run() {
    if (!primitive_->Execute(arguments_.args(), threading::Team::Serial()).ok()) std::exit(1);
  }
  std::string name() const { return std::string(primitive_->name()); }

  // Weights packed from row-major order, as for a model that is loaded; then one run.
  FirstExecution MeasureFirstExecution() {
    const MemoryDesc& packed = primitive_->Desc(kArgWeights);
    const std::string order = std::string("abcde").substr(0, packed.rank());
    const MemoryDesc plain = *MemoryDesc::CreatePattern(packed.dims(), DataType::kF32, order);
    arguments_.Add(kArgFrom, plain);
    FirstExecution first;
    first.create = create_seconds_;
    first.pack = Seconds([&] {
      const auto reorder = CreateReorder({plain, packed}, {}, {.max_isa = max_isa_});
      ExecuteArgs args;
      args.Set(kArgSrc, arguments_.args().Find(kArgFrom))
          .Set(kArgDst, arguments_.args().Find(kArgWeights));
      if (!reorder.ok() || !(*reorder)->Execute(args, threading::Team::Serial()).ok()) std::exit(1);
    });
    first.run = Seconds([&] { Run(); });
    return first;
  }

 private:
  static constexpr int kArgFrom = 9999;  // where the row-major weights are kept

  const cpu::Isa max_isa_;
  double create_seconds_ = 0;
  std::shared_ptr<const Primitive> primitive_;
  FilledArguments arguments_;
};

struct Result {
  Shape shape;
  CoreState state;
  double ratio;  // their time / our time
};

void PrintRow(const Shape& shape, const char* state, const PairedTimes& samples, double peak,
              const std::string& name) {
  const double ours = shape.GigaFlop() / Median(samples.ours);
  const double theirs = shape.GigaFlop() / Median(samples.theirs);
  std::printf("%-22s %8.1f %8.1f %6.1f %% %6.1f %% %7.3f  %s %s\n", shape.name.c_str(), ours,
              theirs, 100 * ours / peak, 100 * theirs / peak, Median(samples.ratios), name.c_str(),
              state);
  std::fflush(stdout);
}

// Five pairs at least, and as many as fit in the time; no more than ten times that where the core
// is in neither state.
TimesByState Sample(OurConvolution& ours, OneDnnConvolution& theirs, double seconds,
                    std::vector<double>* peaks) {
  const CoreProbe probe;
  TimesByState by_state;
  double spent = 0;
  for (int64_t pairs = 0; spent < seconds || (pairs < 5 && spent < 10 * seconds);) {
    if (peaks->size() * 16 <= static_cast<size_t>(pairs)) peaks->push_back(jit::MeasureFmaPeak());
    const CoreState before = probe.Now();
    const double our_time = Seconds([&] { ours.Run(); });
    const double their_time = Seconds([&] { theirs.Run(); });
    const CoreState state = Both(before, probe.Now());
    spent += our_time + their_time;
    by_state[state].Add(our_time, their_time);
    pairs += state == CoreState::kBetween ? 0 : 1;
  }
  return WithoutBetween(std::move(by_state));
}

std::vector<Result> Measure(const Shape& shape, Arithmetic arithmetic, const Allowed& allowed,
                            double seconds) {
  OurConvolution ours(shape, arithmetic, allowed);
  OneDnnConvolution theirs(shape, arithmetic);
  for (int i = 0; i < 2; ++i) {
    ours.Run();
    theirs.Run();
  }
  std::vector<double> peaks;
  std::vector<Result> results;
  const TimesByState by_state = Sample(ours, theirs, seconds, &peaks);
  const double peak = Median(peaks) * (arithmetic == Arithmetic::kU8S8 ? 4 : 1);
  for (const auto& [state, samples] : by_state) {
    PrintRow(shape, CoreStateName(state), samples, peak, ours.name());
    results.push_back({shape, state, Median(samples.ratios)});
  }
  return results;
}

// Create, pack and run, several times over; medians.
Result MeasureFirst(const Shape& shape, const Allowed& allowed) {
  std::vector<double> parts[6], ratios;
  for (int i = 0; i < 7; ++i) {
    const FirstExecution ours =
        OurConvolution(shape, Arithmetic::kF32, allowed).MeasureFirstExecution();
    const FirstExecution theirs = MeasureOneDnnFirstExecution(shape);
    const double values[] = {ours.create,   ours.pack,   ours.run,
                             theirs.create, theirs.pack, theirs.run};
    for (int part = 0; part < 6; ++part) parts[part].push_back(1e6 * values[part]);
    ratios.push_back(theirs.Total() / ours.Total());
  }
  std::printf("%-22s", shape.name.c_str());
  for (const std::vector<double>& part : parts) std::printf(" %8.0f", Median(part));
  std::printf(" %7.3f\n", Median(ratios));
  std::fflush(stdout);
  return {shape, CoreState::kUnknown, Median(ratios)};
}

void Summarize(const char* name, const std::vector<Result>& results, int64_t kernel,
               CoreState state) {
  std::vector<double> ratios;
  double log_sum = 0;
  for (const Result& result : results) {
    if (result.state != state || (kernel != 0 && result.shape.kernel != kernel)) continue;
    ratios.push_back(result.ratio);
    log_sum += std::log(result.ratio);
  }
  if (ratios.empty()) return;
  std::printf("%-8s %3zu shapes   median %.3f   geometric mean %.3f   min %.3f   %s\n", name,
              ratios.size(), Median(ratios), std::exp(log_sum / ratios.size()),
              *std::min_element(ratios.begin(), ratios.end()), CoreStateName(state));
}

int Main(int argc, char** argv) {
  omp_set_num_threads(1);  // oneDNN's threads; too late for OMP_NUM_THREADS, which was read at load
  std::string shapes = "tests/bench/resnet50_convs.txt", max_isa = "best", filter,
              precision = "exact";
  double seconds = 0.5;
  bool first = false, direct = false;
  Arithmetic arithmetic = Arithmetic::kF32;
  CLI::App app("convolutions with relu, ours against oneDNN's, one thread");
  app.add_option("--shapes", shapes, "list of shapes")
      ->check(CLI::ExistingFile)
      ->capture_default_str();
  CLI::Option* type = app.add_option("--type", arithmetic, "f32, u8s8, bf16");
  type->transform(CLI::CheckedTransformer(std::map<std::string, Arithmetic>{
      {"f32", Arithmetic::kF32}, {"u8s8", Arithmetic::kU8S8}, {"bf16", Arithmetic::kBf16}}));
  app.add_option("--precision", precision, "of ours with f32: exact, fast, bf16")
      ->capture_default_str();
  app.add_option("--max_isa", max_isa, "ours may use: avx2, avx512, best")->capture_default_str();
  app.add_flag("--direct", direct, "ours may not use Winograd's algorithm");
  app.add_option("--seconds", seconds, "for each shape")->capture_default_str();
  app.add_option("--filter", filter, "only shapes whose name contains this");
  app.add_flag("--first", first, "time the first execution: create, pack the weights, run")
      ->excludes(type);
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<cpu::Isa> isa = cpu::ParseIsa(max_isa);
  if (!isa.ok()) {
    std::fprintf(stderr, "--max_isa: %s\n", isa.status().ToString().c_str());
    return 2;
  }
  const absl::StatusOr<Precision> permitted = ParsePrecision(precision);
  if (!permitted.ok()) {
    std::fprintf(stderr, "--precision: %s\n", permitted.status().ToString().c_str());
    return 2;
  }
  const Allowed allowed = {
      *isa, direct ? ConvolutionAlgorithm::kDirect : ConvolutionAlgorithm::kAuto, *permitted};
  if (first) {
    std::printf("%-22s %26s %26s %7s\n", "shape", "us to create, pack, run", "the same of oneDNN",
                "ratio");
  } else {
    std::printf("%-22s %8s %8s %8s %8s %7s  %s\n", "shape", "GF/s", "oneDNN", "of peak", "oneDNN",
                "ratio", "implementation");
  }
  std::vector<Result> results;
  for (const Shape& shape : ReadShapes(shapes)) {
    if (!absl::StrContains(shape.name, filter)) continue;
    if (first) {
      results.push_back(MeasureFirst(shape, allowed));
    } else {
      absl::c_copy(Measure(shape, arithmetic, allowed, seconds), std::back_inserter(results));
    }
  }
  for (CoreState state :
       {CoreState::kUnknown, CoreState::kQuiet, CoreState::kBusy, CoreState::kBetween}) {
    Summarize("3x3", results, 3, state);
    Summarize("1x1", results, 1, state);
    Summarize("all", results, 0, state);
  }
  return 0;
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) { return tilewire::bench::Main(argc, argv); }
