// SPDX-License-Identifier: Apache-2.0
//
// The cost of plain layouts for f32 convolutions, with bias and relu, in one thread: the time of
// each pair of nchw and nhwc over that of the layouts which the primitive chooses itself. All run
// in turns, so that what disturbs the machine disturbs all; a figure is the median of its ratios.
//
//   bazel run //tests/bench:layouts_bench -- --shapes $PWD/tests/bench/resnet50_convs.txt
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "engine/primitives/convolution/convolution.h"
#include "tests/bench/filled_arguments.h"
#include "tests/bench/shape_list.h"
#include "tests/bench/stopwatch.h"

namespace tilewire::bench {
namespace {

struct Pair {
  const char *src, *dst;
};
constexpr Pair kPairs[] = {{"any", "any"},   {"nchw", "nchw"}, {"nchw", "nhwc"},
                           {"nhwc", "nchw"}, {"nhwc", "nhwc"}, {"nchw", "any"},
                           {"any", "nchw"},  {"nhwc", "any"},  {"any", "nhwc"}};

MemoryDesc Desc(const Dims& dims, const std::string& layout) {
  const std::map<std::string, std::string> patterns = {{"nchw", "abcd"}, {"nhwc", "acdb"}};
  return layout == "any" ? *MemoryDesc::CreateAny(dims, DataType::kF32)
                         : *MemoryDesc::CreatePattern(dims, DataType::kF32, patterns.at(layout));
}

ConvolutionDesc DescOf(const Shape& s, const Pair& pair) {
  ConvolutionDesc desc;
  desc.src = Desc({s.batch, s.ic, s.in, s.in}, pair.src);
  desc.dst = Desc({s.batch, s.oc, s.out, s.out}, pair.dst);
  desc.bias = Desc({s.oc}, "any");
  const Dims in_a_group = {s.oc / s.groups, s.ic / s.groups, s.kernel, s.kernel};
  Dims weights = in_a_group;
  if (s.groups > 1) weights.insert(weights.begin(), s.groups);
  desc.weights = Desc(weights, "any");
  desc.strides = {s.stride, s.stride};
  desc.dilations = {0, 0};
  desc.padding_left = desc.padding_right = {s.padding, s.padding};
  return desc;
}

struct Subject {
  std::shared_ptr<const Primitive> primitive;
  FilledArguments arguments;
  std::vector<double> times;

  void Run() {
    times.push_back(Seconds([this] {
      if (!primitive->Execute(arguments.args(), threading::Team::Serial()).ok()) std::exit(1);
    }));
  }
};

Subject Create(const Shape& shape, const Pair& pair) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  (void)attributes.post_ops.Append(EltwisePostOp{});
  auto primitive = CreateConvolution(DescOf(shape, pair), attributes, {});
  if (!primitive.ok()) {
    std::fprintf(stderr, "%s: %s\n", shape.name.c_str(), primitive.status().ToString().c_str());
    std::exit(1);
  }
  Subject subject{*std::move(primitive), {}, {}};
  for (int arg : {kArgSrc, kArgWeights, kArgBias, kArgDst})
    subject.arguments.Add(arg, subject.primitive->Desc(arg));
  subject.arguments.Add(kArgScratchpad, subject.primitive->ScratchpadDesc());
  return subject;
}

// The ratio of each pair but the first one, which chooses its layouts.
std::vector<double> Measure(const Shape& shape, double seconds) {
  std::vector<Subject> subjects;
  for (const Pair& pair : kPairs) subjects.push_back(Create(shape, pair));
  for (double spent = 0; spent < seconds || subjects[0].times.size() < 5;) {
    for (Subject& subject : subjects) {
      subject.Run();
      spent += subject.times.back();
    }
  }
  std::printf("%-22s %9.1f us", shape.name.c_str(), 1e6 * Median(subjects[0].times));
  std::vector<double> medians;
  for (size_t i = 1; i < subjects.size(); ++i) {
    std::vector<double> ratios;
    for (size_t run = 0; run < subjects[i].times.size(); ++run)
      ratios.push_back(subjects[i].times[run] / subjects[0].times[run]);
    medians.push_back(Median(ratios));
    std::printf(" %9.2f", medians.back());
  }
  std::printf("  %s", std::string(subjects[0].primitive->name()).c_str());
  for (size_t i = 1; i < subjects.size(); ++i) {
    if (medians[i - 1] > 1.5) {
      std::printf(" [%s-%s: %s]", kPairs[i].src, kPairs[i].dst,
                  std::string(subjects[i].primitive->name()).c_str());
    }
  }
  std::printf("\n");
  std::fflush(stdout);
  return medians;
}

int Main(int argc, char** argv) {
  std::string shapes = "tests/bench/resnet50_convs.txt", filter;
  double seconds = 0.5;
  CLI::App app("f32 convolutions with relu in plain layouts over blocked ones, one thread");
  app.add_option("--shapes", shapes, "list of shapes")
      ->check(CLI::ExistingFile)
      ->capture_default_str();
  app.add_option("--filter", filter, "only shapes whose name contains this");
  app.add_option("--seconds", seconds, "for each shape")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::printf("%-22s %12s", "shape", "its own");
  for (size_t i = 1; i < std::size(kPairs); ++i)
    std::printf(" %4s-%-4s", kPairs[i].src, kPairs[i].dst);
  std::printf("  implementation\n");
  std::vector<double> largest(std::size(kPairs) - 1);
  for (const Shape& shape : ReadShapes(shapes)) {
    if (!absl::StrContains(shape.name, filter)) continue;
    const std::vector<double> ratios = Measure(shape, seconds);
    for (size_t i = 0; i < ratios.size(); ++i) largest[i] = std::max(largest[i], ratios[i]);
  }
  std::printf("%-22s %12s", "largest", "");
  for (const double ratio : largest) std::printf(" %9.2f", ratio);
  std::printf("\n");
  return 0;
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) { return tilewire::bench::Main(argc, argv); }
