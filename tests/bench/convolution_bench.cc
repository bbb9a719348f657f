// SPDX-License-Identifier: Apache-2.0
//
// f32 convolutions with bias and relu, ours against oneDNN's, one thread, each in the layouts it
// chose. The two alternate (A B A B ...), so that what disturbs the machine disturbs both; a
// shape's figure is the median over pairs of (their time / our time): above 1 we are faster. The
// share of peak is against a loop of FMAs run in between.
//
//   bazel run //tests/bench:convolution_bench -- --shapes $PWD/tests/bench/resnet50_convs.txt
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "engine/base/aligned_buffer.h"
#include "engine/primitives/convolution/convolution.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/onednn_convolution.h"
#include "tests/bench/shape_list.h"
#include "tests/bench/stopwatch.h"
#include "tests/support/random_tensor.h"

namespace tilewire::bench {
namespace {

ConvolutionDesc DescOf(const Shape& s) {
  ConvolutionDesc desc;
  desc.src = *MemoryDesc::CreateAny({s.batch, s.ic, s.in, s.in}, DataType::kF32);
  desc.dst = *MemoryDesc::CreateAny({s.batch, s.oc, s.out, s.out}, DataType::kF32);
  desc.bias = *MemoryDesc::CreateAny({s.oc}, DataType::kF32);
  desc.weights =
      s.groups > 1
          ? *MemoryDesc::CreateAny({s.groups, s.oc / s.groups, s.ic / s.groups, s.kernel, s.kernel},
                                   DataType::kF32)
          : *MemoryDesc::CreateAny({s.oc, s.ic, s.kernel, s.kernel}, DataType::kF32);
  desc.strides = {s.stride, s.stride};
  desc.dilations = {0, 0};
  desc.padding_left = desc.padding_right = {s.padding, s.padding};
  return desc;
}

// Our primitive with buffers in the layouts it chose. Contents are random: layouts do not matter to
// the time.
class OurConvolution {
 public:
  OurConvolution(const Shape& shape, cpu::Isa max_isa) {
    Attributes attributes;
    attributes.scratchpad_mode = ScratchpadMode::kUser;
    (void)attributes.post_ops.Append(EltwisePostOp{});
    auto primitive = CreateConvolution(DescOf(shape), attributes, {.max_isa = max_isa});
    if (!primitive.ok()) {
      std::fprintf(stderr, "%s: %s\n", shape.name.c_str(), primitive.status().ToString().c_str());
      std::exit(1);
    }
    primitive_ = *std::move(primitive);
    for (int arg : {kArgSrc, kArgWeights, kArgBias, kArgDst}) Bring(arg, primitive_->Desc(arg));
    Bring(kArgScratchpad, primitive_->ScratchpadDesc());
  }

  void Run() {
    if (!primitive_->Execute(args_, threading::Team::Serial()).ok()) std::exit(1);
  }
  std::string name() const { return std::string(primitive_->name()); }

 private:
  void Bring(int arg, const MemoryDesc& desc) {
    AlignedBuffer buffer = *AlignedBuffer::Allocate(desc.SizeBytes());
    testing::FillUniform({reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)},
                         arg);
    args_.Set(arg, buffer.data());
    buffers_.push_back(std::move(buffer));
  }

  std::shared_ptr<const Primitive> primitive_;
  ExecuteArgs args_;
  std::vector<AlignedBuffer> buffers_;
};

struct Result {
  Shape shape;
  double ratio;  // their time / our time
};

Result Measure(const Shape& shape, cpu::Isa max_isa, double seconds) {
  OurConvolution ours(shape, max_isa);
  OneDnnConvolution theirs(shape);
  for (int i = 0; i < 2; ++i) {
    ours.Run();
    theirs.Run();
  }
  std::vector<double> our_times, their_times, ratios, peaks;
  for (double spent = 0; spent < seconds || ratios.size() < 5;) {
    if (ratios.size() % 16 == 0) peaks.push_back(MeasureFmaPeak());
    our_times.push_back(Seconds([&] { ours.Run(); }));
    their_times.push_back(Seconds([&] { theirs.Run(); }));
    ratios.push_back(their_times.back() / our_times.back());
    spent += our_times.back() + their_times.back();
  }
  const double our_rate = shape.GigaFlop() / Median(our_times), peak = Median(peaks);
  std::printf("%-22s %8.1f %8.1f %6.1f %% %6.1f %% %7.3f  %s\n", shape.name.c_str(), our_rate,
              shape.GigaFlop() / Median(their_times), 100 * our_rate / peak,
              100 * shape.GigaFlop() / Median(their_times) / peak, Median(ratios),
              ours.name().c_str());
  std::fflush(stdout);
  return {shape, Median(ratios)};
}

void Summarize(const char* name, const std::vector<Result>& results, int64_t kernel) {
  std::vector<double> ratios;
  double log_sum = 0;
  for (const Result& result : results) {
    if (kernel != 0 && result.shape.kernel != kernel) continue;
    ratios.push_back(result.ratio);
    log_sum += std::log(result.ratio);
  }
  if (ratios.empty()) return;
  std::printf("%-8s %3zu shapes   median %.3f   geometric mean %.3f   min %.3f\n", name,
              ratios.size(), Median(ratios), std::exp(log_sum / ratios.size()),
              *std::min_element(ratios.begin(), ratios.end()));
}

int Main(int argc, char** argv) {
  omp_set_num_threads(1);  // oneDNN's threads; too late for OMP_NUM_THREADS, which was read at load
  std::string shapes = "tests/bench/resnet50_convs.txt", max_isa = "best", filter;
  double seconds = 0.5;
  CLI::App app("f32 convolutions with relu, ours against oneDNN's, one thread");
  app.add_option("--shapes", shapes, "list of shapes")
      ->check(CLI::ExistingFile)
      ->capture_default_str();
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
  std::vector<Result> results;
  for (const Shape& shape : ReadShapes(shapes)) {
    if (absl::StrContains(shape.name, filter)) results.push_back(Measure(shape, *isa, seconds));
  }
  Summarize("3x3", results, 3);
  Summarize("1x1", results, 1);
  Summarize("all", results, 0);
  return 0;
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) { return tilewire::bench::Main(argc, argv); }
