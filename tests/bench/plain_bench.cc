// SPDX-License-Identifier: Apache-2.0
//
// The cost of plain layouts for f32 operations other than convolutions, in one thread: the time in
// each layout that a caller may name over that in the best one. All of a case run in turns, so that
// what disturbs the machine disturbs all; a figure is the median of its ratios, and the ratio of
// the fastest runs stands beside it.
//
//   bazel run //tests/bench:plain_bench
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/primitives/deconvolution/deconvolution.h"
#include "engine/primitives/inner_product/inner_product.h"
#include "engine/primitives/matmul/matmul.h"
#include "engine/primitives/softmax/softmax.h"
#include "tests/bench/filled_arguments.h"
#include "tests/bench/stopwatch.h"

namespace tilewire::bench {
namespace {

using Created = absl::StatusOr<std::shared_ptr<const Primitive>>;

struct Subject {
  std::string layout;
  std::shared_ptr<const Primitive> primitive;
  FilledArguments arguments;
  std::vector<double> times;

  void Run() {
    times.push_back(Seconds([this] {
      if (!primitive->Execute(arguments.args(), threading::Team::Serial()).ok()) std::exit(1);
    }));
  }
};

// The first subject is in the best layout.
struct Case {
  std::string name;
  std::vector<Subject> subjects;
};

// `layout` is a pattern, or "any".
MemoryDesc Desc(const Dims& dims, const std::string& layout) {
  return layout == "any" ? *MemoryDesc::CreateAny(dims, DataType::kF32)
                         : *MemoryDesc::CreatePattern(dims, DataType::kF32, layout);
}

Subject SubjectOf(const std::string& layout, Created primitive) {
  if (!primitive.ok()) {
    std::fprintf(stderr, "%s: %s\n", layout.c_str(), primitive.status().ToString().c_str());
    std::exit(1);
  }
  Subject subject{layout, *std::move(primitive), {}, {}};
  for (const ArgDesc& arg : subject.primitive->info().args)
    subject.arguments.Add(arg.arg, arg.desc);
  subject.arguments.Add(kArgScratchpad, subject.primitive->ScratchpadDesc());
  return subject;
}

Attributes UserScratchpad() {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  return attributes;
}

Case Softmax(const Dims& dims, const std::vector<std::string>& layouts) {
  Case all{absl::StrCat("softmax ", Desc(dims, "any").ToString()), {}};
  for (const std::string& layout : layouts) {
    const MemoryDesc desc = Desc(dims, layout);
    all.subjects.push_back(SubjectOf(
        layout, CreateSoftmax({.src = desc, .dst = desc, .axis = 1}, UserScratchpad(), {})));
  }
  return all;
}

Case InnerProduct(int64_t rows, int64_t inputs, int64_t outputs) {
  Case all{absl::StrCat("inner product ", rows, "x", inputs, "x", outputs), {}};
  for (const char* weights : {"any", "ba", "ab"}) {
    const InnerProductDesc desc = {.src = Desc({rows, inputs}, "ab"),
                                   .weights = Desc({outputs, inputs}, weights),
                                   .bias = Desc({outputs}, "a"),
                                   .dst = Desc({rows, outputs}, "ab")};
    all.subjects.push_back(SubjectOf(weights, CreateInnerProduct(desc, UserScratchpad(), {})));
  }
  return all;
}

Case Matmul(int64_t m, int64_t k, int64_t n) {
  Case all{absl::StrCat("matmul ", m, "x", k, "x", n), {}};
  for (const char* weights : {"ab", "ba"}) {
    const MatmulDesc desc = {.src = Desc({m, k}, "ab"),
                             .weights = Desc({k, n}, weights),
                             .bias = {},
                             .dst = Desc({m, n}, "ab")};
    all.subjects.push_back(SubjectOf(weights, CreateMatmul(desc, UserScratchpad(), {})));
  }
  return all;
}

Case Deconvolution(int64_t batch, int64_t inputs, int64_t outputs, int64_t in, int64_t kernel) {
  Case all{absl::StrCat("deconvolution ", batch, "x", inputs, "x", in, "x", in, " to ", outputs,
                        " by ", kernel, "x", kernel),
           {}};
  for (const char* layout : {"any", "abcd", "acdb"}) {
    const int64_t out = 2 * (in - 1) + kernel;
    const DeconvolutionDesc desc = {.src = Desc({batch, inputs, in, in}, layout),
                                    .weights = Desc({outputs, inputs, kernel, kernel}, "any"),
                                    .bias = Desc({outputs}, "a"),
                                    .dst = Desc({batch, outputs, out, out}, layout),
                                    .strides = {2, 2},
                                    .dilations = {0, 0},
                                    .padding_left = {0, 0},
                                    .padding_right = {0, 0}};
    all.subjects.push_back(SubjectOf(layout, CreateDeconvolution(desc, UserScratchpad(), {})));
  }
  return all;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back(Softmax({32, 1000, 7, 7}, {"acdb", "abcd", "aBcd16b"}));
  cases.push_back(Softmax({1, 1000, 7, 7}, {"acdb", "abcd", "aBcd16b"}));
  cases.push_back(Softmax({8, 21, 65, 65}, {"acdb", "abcd", "aBcd16b"}));
  cases.push_back(Softmax({2, 256, 56, 56}, {"acdb", "abcd", "aBcd16b"}));
  cases.push_back(Softmax({64, 100, 3, 3}, {"acdb", "abcd", "aBcd16b"}));
  for (const int64_t rows : {1, 2, 4, 8, 16, 64, 256})
    cases.push_back(InnerProduct(rows, 2048, 1000));
  cases.push_back(InnerProduct(16, 1024, 1024));
  cases.push_back(InnerProduct(64, 845, 1024));
  for (const int64_t rows : {1, 4, 16, 64, 256}) cases.push_back(Matmul(rows, 2048, 1000));
  for (const int64_t rows : {1, 4, 64, 512}) cases.push_back(Matmul(rows, 64, 512));
  cases.push_back(Matmul(197, 64, 197));
  cases.push_back(Matmul(512, 512, 512));
  cases.push_back(Matmul(64, 1024, 1024));
  cases.push_back(Deconvolution(1, 64, 32, 28, 3));
  cases.push_back(Deconvolution(1, 21, 21, 16, 4));
  return cases;
}

void Measure(Case* measured, double seconds) {
  std::vector<Subject>& subjects = measured->subjects;
  for (double spent = 0; spent < seconds || subjects[0].times.size() < 5;) {
    for (Subject& subject : subjects) {
      subject.Run();
      spent += subject.times.back();
    }
  }
  const auto fastest = [](const Subject& subject) {
    return *std::min_element(subject.times.begin(), subject.times.end());
  };
  std::printf("%s\n", measured->name.c_str());
  for (const Subject& subject : subjects) {
    std::vector<double> ratios;
    for (size_t run = 0; run < subject.times.size(); ++run)
      ratios.push_back(subject.times[run] / subjects[0].times[run]);
    std::printf("  %-8s %10.1f us %10.1f %7.2f %7.2f  %s\n", subject.layout.c_str(),
                1e6 * Median(subject.times), 1e6 * fastest(subject), Median(ratios),
                fastest(subject) / fastest(subjects[0]),
                std::string(subject.primitive->name()).c_str());
  }
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  std::string filter;
  double seconds = 1;
  CLI::App app("f32 operations in plain layouts over the best ones, one thread");
  app.add_option("--filter", filter, "only cases whose name contains this");
  app.add_option("--seconds", seconds, "for each case")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::printf("  %-8s %13s %10s %7s %7s\n", "layout", "median", "fastest", "ratio", "fastest");
  for (Case& measured : Cases())
    if (absl::StrContains(measured.name, filter)) Measure(&measured, seconds);
  return 0;
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) { return tilewire::bench::Main(argc, argv); }
