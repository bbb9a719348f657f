// SPDX-License-Identifier: Apache-2.0
//
// Gradients of f32 convolutions, of src or of weights and bias, ours against oneDNN's, one thread,
// each in the layouts it chose; weights of ours are copied in every run, as in training. The two
// alternate, and a shape's figure is the median over pairs of (their time / our time): above 1 we
// are faster. The share of peak is against a loop of FMAs run in between.
//
//   bazel run //tests/bench:gradients_bench -- --kind=weights --batch=8
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "engine/jit/fma_peak.h"
#include "engine/primitives/convolution/convolution.h"
#include "tests/bench/filled_arguments.h"
#include "tests/bench/gradients/onednn_gradient.h"
#include "tests/bench/shape_list.h"
#include "tests/bench/stopwatch.h"

namespace tilewire::bench {
namespace {

ConvolutionDesc GradientDescOf(const Shape& s, GradientKind kind) {
  const auto any = [](const Dims& dims) { return *MemoryDesc::CreateAny(dims, DataType::kF32); };
  const bool of_weights = kind == GradientKind::kWeights;
  ConvolutionDesc desc;
  desc.prop_kind = of_weights ? PropKind::kBackwardWeights : PropKind::kBackwardData;
  desc.src = any({s.batch, s.ic, s.in, s.in});
  desc.dst = any({s.batch, s.oc, s.out, s.out});
  if (of_weights) desc.bias = any({s.oc});
  desc.weights = s.groups > 1
                     ? any({s.groups, s.oc / s.groups, s.ic / s.groups, s.kernel, s.kernel})
                     : any({s.oc, s.ic, s.kernel, s.kernel});
  desc.strides = {s.stride, s.stride};
  desc.dilations = {0, 0};
  desc.padding_left = desc.padding_right = {s.padding, s.padding};
  return desc;
}

class OurGradient {
 public:
  OurGradient(const Shape& shape, GradientKind kind, cpu::Isa max_isa) {
    Attributes attributes;
    attributes.scratchpad_mode = ScratchpadMode::kUser;
    auto primitive =
        CreateConvolution(GradientDescOf(shape, kind), attributes, {.max_isa = max_isa});
    if (!primitive.ok()) {
      std::fprintf(stderr, "%s: %s\n", shape.name.c_str(), primitive.status().ToString().c_str());
      std::exit(1);
    }
    primitive_ = *std::move(primitive);
    for (const ArgDesc& arg : primitive_->info().args) arguments_.Add(arg.arg, arg.desc);
    arguments_.Add(kArgScratchpad, primitive_->ScratchpadDesc());
  }

  void Run() {
    if (!primitive_->Execute(arguments_.args(), threading::Team::Serial()).ok()) std::exit(1);
  }
  std::string name() const { return std::string(primitive_->name()); }

 private:
  std::shared_ptr<const Primitive> primitive_;
  FilledArguments arguments_;
};

struct GradientFigures {
  double share, ratio;  // of peak; their time / our time
};

// Five pairs at least, and as many as fit in the time.
GradientFigures MeasureGradient(const Shape& shape, GradientKind kind, cpu::Isa max_isa,
                                double seconds) {
  constexpr size_t kFewestPairs = 5;
  OurGradient ours(shape, kind, max_isa);
  OneDnnGradient theirs(shape, kind);
  ours.Run();
  theirs.Run();
  std::vector<double> our_times, their_times, ratios, peaks;
  for (double spent = 0; spent < seconds || ratios.size() < kFewestPairs;) {
    peaks.push_back(jit::MeasureFmaPeak(max_isa));
    our_times.push_back(Seconds([&] { ours.Run(); }));
    their_times.push_back(Seconds([&] { theirs.Run(); }));
    ratios.push_back(their_times.back() / our_times.back());
    spent += our_times.back() + their_times.back();
  }
  const double peak = Median(peaks), rate = shape.GigaFlop() / Median(our_times);
  const double their_rate = shape.GigaFlop() / Median(their_times);
  const GradientFigures figures{rate / peak, Median(ratios)};
  std::printf("%-22s %8.1f %8.1f %6.1f %% %6.1f %% %7.3f  %s\n", shape.name.c_str(), rate,
              their_rate, 100 * figures.share, 100 * their_rate / peak, figures.ratio,
              ours.name().c_str());
  std::fflush(stdout);
  return figures;
}

void SummarizeGradients(const std::vector<GradientFigures>& all) {
  double share = 0, ratio = 0, least = all.front().ratio;
  for (const GradientFigures& figures : all) {
    share += std::log(figures.share);
    ratio += std::log(figures.ratio);
    least = std::min(least, figures.ratio);
  }
  const auto count = static_cast<double>(all.size());
  std::printf("%zu shapes, geometric means: %.1f %% of peak, ratio %.3f; least ratio %.3f\n",
              all.size(), 100 * std::exp(share / count), std::exp(ratio / count), least);
}

int Main(int argc, char** argv) {
  omp_set_num_threads(1);  // oneDNN's threads
  std::string shapes = "tests/bench/resnet50_convs.txt", kind = "weights", max_isa = "best", filter;
  int64_t batch = 8;
  double seconds = 0.5;
  CLI::App app("gradients of convolutions, ours against oneDNN's, one thread");
  app.add_option("--shapes", shapes, "list of shapes")
      ->check(CLI::ExistingFile)
      ->capture_default_str();
  app.add_option("--kind", kind, "of src or weights")
      ->check(CLI::IsMember({"src", "weights"}))
      ->capture_default_str();
  app.add_option("--batch", batch, "images")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--max_isa", max_isa, "ours may use: avx2, avx512, best")->capture_default_str();
  app.add_option("--seconds", seconds, "for each shape")->capture_default_str();
  app.add_option("--filter", filter, "only shapes whose name contains this");
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<cpu::Isa> isa = cpu::ParseIsa(max_isa);
  if (!isa.ok()) {
    std::fprintf(stderr, "--max_isa: %s\n", isa.status().ToString().c_str());
    return 2;
  }
  std::printf("%-22s %8s %8s %8s %8s %7s  %s\n", "shape", "GF/s", "oneDNN", "of peak", "oneDNN",
              "ratio", "implementation");
  const GradientKind of = kind == "src" ? GradientKind::kSrc : GradientKind::kWeights;
  std::vector<GradientFigures> all;
  for (Shape shape : ReadShapes(shapes)) {
    if (!absl::StrContains(shape.name, filter)) continue;
    shape.batch = batch;
    all.push_back(MeasureGradient(shape, of, *isa, seconds));
  }
  if (!all.empty()) SummarizeGradients(all);
  return 0;
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) { return tilewire::bench::Main(argc, argv); }
