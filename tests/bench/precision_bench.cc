// SPDX-License-Identifier: Apache-2.0
//
// The error and the gain in time of each precision, on models of one image input:
//
//   precision_bench resnet50.onnx vgg16.onnx
//
// Of each model and precision, against the same model in exact: the relative error (L2) of its
// first output over all images, in how many images the largest element is the same one, and the
// median time of an image on one thread, the precisions in turns. Images are made up: coarse
// squares of random colours with a little noise, of mean 0 and variance about 1.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "tests/bench/image_model.h"
#include "tests/bench/stopwatch.h"
#include "tests/support/float_tensors.h"
#include "tests/support/random_tensor.h"

namespace tilewire::bench {
namespace {

constexpr Precision kPrecisions[] = {Precision::kExact, Precision::kFast, Precision::kBf16};

struct Options {
  std::vector<std::string> models;
  int images = 16, rounds = 5;
};

// One precision of one model.
struct Mode {
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const Model> model;
  std::vector<std::vector<float>> answers;  // of each image
  std::vector<double> seconds;
};

absl::StatusOr<Mode> Load(const std::string& path, Precision precision) {
  Mode mode;
  ABSL_ASSIGN_OR_RETURN(
      mode.engine,
      Engine::Create({.threads = 1, .threads_per_request = 1, .precision = precision}));
  ABSL_ASSIGN_OR_RETURN(mode.model, mode.engine->LoadModel(path));
  return mode;
}

std::vector<float> Image(const Dims& dims, uint64_t seed) {
  constexpr int64_t kSquare = 16;
  const int64_t count = *ElementCount(dims), width = dims.back(), height = dims[dims.size() - 2];
  const std::vector<float> colours = testing::RandomFloats(count, 2 * seed, -1.7f, 1.7f);
  std::vector<float> image = testing::RandomFloats(count, 2 * seed + 1, -0.3f, 0.3f);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t plane = i / (width * height), y = i / width % height, x = i % width;
    image[i] += colours[plane * width * height + y / kSquare * width + x / kSquare];
  }
  return image;
}

absl::StatusOr<std::vector<float>> Answer(const Mode& mode, const std::vector<float>& image,
                                          const Dims& dims) {
  const InputTensor input{dims, Layout::kNchw, {testing::BytesOf(image)}};
  const OutputRequest first;
  ABSL_ASSIGN_OR_RETURN(const auto outputs, mode.model->Run({&input, 1}, {&first, 1}, {}));
  return testing::FloatsOf(outputs[0].bytes);
}

int64_t Largest(const std::vector<float>& answer) {
  return std::max_element(answer.begin(), answer.end()) - answer.begin();
}

// All answers of a mode, one after the other.
std::vector<float> Together(const Mode& mode) {
  std::vector<float> all;
  for (const std::vector<float>& answer : mode.answers)
    all.insert(all.end(), answer.begin(), answer.end());
  return all;
}

void Print(const std::string& name, const Mode& exact, Precision precision, const Mode& mode) {
  int same = 0;
  for (size_t i = 0; i < exact.answers.size(); ++i)
    same += Largest(mode.answers[i]) == Largest(exact.answers[i]) ? 1 : 0;
  std::printf(
      "%-24s %-6s relative L2 %.1e  same largest %d of %zu  %9.3f ms  %.2f of exact's speed\n",
      name.c_str(), std::string(PrecisionName(precision)).c_str(),
      testing::RelativeL2(Together(mode), Together(exact)), same, exact.answers.size(),
      1e3 * Median(mode.seconds), Median(exact.seconds) / Median(mode.seconds));
  std::fflush(stdout);
}

absl::Status Measure(const std::string& path, const Options& options) {
  std::vector<Mode> modes;
  for (const Precision precision : kPrecisions) {
    ABSL_ASSIGN_OR_RETURN(Mode mode, Load(path, precision));
    modes.push_back(std::move(mode));
  }
  ABSL_ASSIGN_OR_RETURN(const Dims dims, ImageDimsOf(*modes[0].model, path));
  for (int i = 0; i < options.images; ++i) {
    const std::vector<float> image = Image(dims, i + 1);
    for (Mode& mode : modes) {
      ABSL_ASSIGN_OR_RETURN(std::vector<float> answer, Answer(mode, image, dims));
      mode.answers.push_back(std::move(answer));
    }
  }
  const std::vector<float> image = Image(dims, 1);
  absl::Status status;
  for (int round = 0; round < options.rounds; ++round) {
    for (Mode& mode : modes)
      mode.seconds.push_back(Seconds([&] { status.Update(Answer(mode, image, dims).status()); }));
  }
  ABSL_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < modes.size(); ++i) Print(NameOf(path), modes[0], kPrecisions[i], modes[i]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) {
  tilewire::bench::Options options;
  CLI::App app{"What each precision costs and gains"};
  app.add_option("models", options.models, "ONNX files of one image input")->required();
  app.add_option("--images", options.images, "to compare answers for")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "measured runs of each")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  for (const std::string& model : options.models) {
    const absl::Status status = tilewire::bench::Measure(model, options);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
