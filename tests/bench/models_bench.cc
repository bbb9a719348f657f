// SPDX-License-Identifier: Apache-2.0
//
// Whole models, ours against ONNX Runtime, run by run in turn:
//
//   models_bench --onnxruntime=libonnxruntime.so.1 resnet50.onnx vgg16.onnx
//
// For 1 thread and for all cores, batches 1 and 8: the medians, the median of the ratios of
// neighbouring runs, how far the answers are apart, and the geometric mean of the ratios. Of each
// model also, in processes of their own, the time from nothing to the first answer and the resident
// memory once it is loaded, against weights x 1.5 + 60 MB. With one thread the time is that of the
// thread on its core, else the wall's, of runs in a row after one that wakes the threads. Where
// there are matrix tiles (AMX), which the core's other hardware thread slows down, quiet and busy
// moments of one thread are given apart (core_state.h). Without a library ours alone.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "tests/bench/core_state.h"
#include "tests/bench/image_model.h"
#include "tests/bench/onnx_runtime.h"
#include "tests/bench/stopwatch.h"
#include "tests/bench/typed_elements.h"
#include "tests/support/float_tensors.h"

namespace tilewire::bench {
namespace {

struct Options {
  std::string library;
  std::vector<std::string> models;
  std::vector<int64_t> batches = {1, 8};
  std::vector<int> threads = {1, 0};
  int rounds = 11;
  bool loads = true;
  Precision precision = Precision::kExact;  // ours
};

template <typename Function>
double WallSeconds(Function function) {
  const absl::Time start = absl::Now();
  function();
  return absl::ToDoubleSeconds(absl::Now() - start);
}

// The elements of an input, row-major.
struct Source {
  Dims dims;
  DataType type = DataType::kF32;
  std::string bytes;
};

// Either side, with one model loaded. An error of a run ends the measurement.
class Side {
 public:
  static absl::StatusOr<std::unique_ptr<Side>> Ours(const std::string& model, int threads,
                                                    Precision precision) {
    auto side = std::make_unique<Side>();
    ABSL_ASSIGN_OR_RETURN(side->engine_, Engine::Create({.threads = threads,
                                                         .threads_per_request = threads,
                                                         .precision = precision}));
    ABSL_ASSIGN_OR_RETURN(side->model_, side->engine_->LoadModel(model));
    return side;
  }
  static absl::StatusOr<std::unique_ptr<Side>> Theirs(const std::string& library,
                                                      const std::string& model, int threads) {
    auto side = std::make_unique<Side>();
    ABSL_ASSIGN_OR_RETURN(side->runtime_, OnnxRuntime::Open(library, threads));
    ABSL_ASSIGN_OR_RETURN(side->session_, side->runtime_->Load(model));
    return side;
  }

  // Answers take the memory of those before, as the server's do.
  absl::StatusOr<std::vector<float>> Run(const Source& source) {
    if (session_ != nullptr) {
      return session_->Run(source.bytes, source.type,
                           std::vector<int64_t>(source.dims.begin(), source.dims.end()));
    }
    const OutputRequest first;
    const InputTensor input{source.dims, Layout::kNchw, {source.bytes}};
    RunOptions options;
    options.allocate_output = [this](size_t bytes) -> absl::StatusOr<AlignedBuffer> {
      if (answer_.size() == bytes) return std::move(answer_);
      return AlignedBuffer::Allocate(bytes);
    };
    ABSL_ASSIGN_OR_RETURN(auto outputs, model_->Run({&input, 1}, {&first, 1}, options));
    answer_ = std::move(outputs[0].bytes);
    const DataType type = model_->signature().outputs[0].type;
    return FloatsOf(type, answer_.data(), static_cast<int64_t>(answer_.size()) / SizeOf(type));
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<const Model> model_;
  AlignedBuffer answer_;
  std::unique_ptr<OnnxRuntime> runtime_;
  std::unique_ptr<OnnxRuntime::Session> session_;
};

// One image of a model.
struct ImageSpec {
  Dims dims;
  DataType type = DataType::kF32;
};

absl::StatusOr<ImageSpec> ImageOf(const std::string& path) {
  ABSL_ASSIGN_OR_RETURN(const auto engine, Engine::Create({.threads = 1}));
  ABSL_ASSIGN_OR_RETURN(const auto model, engine->LoadModel(path));
  ABSL_ASSIGN_OR_RETURN(Dims dims, ImageDimsOf(*model, path));
  return ImageSpec{std::move(dims), model->signature().inputs[0].type};
}

Source Images(const ImageSpec& image, int64_t batch) {
  Source source{image.dims, image.type, ""};
  source.dims[0] = batch;
  std::vector<float> values(*ElementCount(source.dims));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1009) / 504.5f - 1;
  source.bytes = ElementsOf(image.type, values);
  return source;
}

struct Loading {
  double milliseconds = 0, megabytes = 0;
};

double ResidentMegabytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// The result of `work(Result*)`, called in a process of its own, which has no thread but this one
// yet.
template <typename Result, typename Work>
absl::StatusOr<Result> InChild(Work work) {
  int ends[2];
  if (pipe(ends) != 0) return absl::InternalError("no pipe");
  const pid_t child = fork();
  Result result = {};
  if (child == 0) {
    const absl::Status status = work(&result);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    const bool written = write(ends[1], &result, sizeof(result)) == sizeof(result);
    _exit(status.ok() && written ? 0 : 1);
  }
  close(ends[1]);
  const bool whole = read(ends[0], &result, sizeof(result)) == sizeof(result);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!whole || status != 0) return absl::InternalError("a child failed");
  return result;
}

struct FlatImage {
  size_t rank = 0;
  int64_t dims[kMaxRank] = {};
  DataType type = DataType::kF32;
};

absl::StatusOr<ImageSpec> ImageAskedInChild(const std::string& model) {
  ABSL_ASSIGN_OR_RETURN(const FlatImage flat, InChild<FlatImage>([&](FlatImage* result) {
                          ABSL_ASSIGN_OR_RETURN(const ImageSpec image, ImageOf(model));
                          result->rank = image.dims.size();
                          std::copy(image.dims.begin(), image.dims.end(), result->dims);
                          result->type = image.type;
                          return absl::OkStatus();
                        }));
  return ImageSpec{Dims(flat.dims, flat.dims + flat.rank), flat.type};
}

// From nothing to the first answer.
absl::StatusOr<Loading> Load(const Options& options, const std::string& model,
                             const ImageSpec& spec, bool ours) {
  return InChild<Loading>([&](Loading* loading) {
    const Source image = Images(spec, 1);
    absl::Status status;
    loading->milliseconds = 1e3 * WallSeconds([&] {
                              const auto side = ours ? Side::Ours(model, 1, options.precision)
                                                     : Side::Theirs(options.library, model, 1);
                              loading->megabytes = ResidentMegabytes();
                              status = side.ok() ? (*side)->Run(image).status() : side.status();
                            });
    return status;
  });
}

absl::Status PrintLoading(const Options& options, const std::string& model) {
  ABSL_ASSIGN_OR_RETURN(const ImageSpec image, ImageAskedInChild(model));
  ABSL_ASSIGN_OR_RETURN(const Loading ours, Load(options, model, image, /*ours=*/true));
  const double file = static_cast<double>(std::ifstream(model, std::ios::ate).tellg()) / 1e6;
  std::printf("load %-24s ours %7.0f ms, %6.0f MB of %6.0f allowed", NameOf(model).c_str(),
              ours.milliseconds, ours.megabytes, file * 1.5 + 60);
  if (!options.library.empty()) {
    ABSL_ASSIGN_OR_RETURN(const Loading theirs, Load(options, model, image, /*ours=*/false));
    std::printf("   onnxruntime %7.0f ms, %6.0f MB", theirs.milliseconds, theirs.megabytes);
  }
  std::printf("\n");
  std::fflush(stdout);
  return absl::OkStatus();
}

struct Setting {
  int threads;
  int64_t batch;
};

// Until no thread of this process spins: one that waits for more work of its side would take a core
// from the other side.
void AwaitIdleThreads() {
  std::clock_t before = 0, now = std::clock();  // of all threads
  do {
    before = now;
    absl::SleepFor(absl::Milliseconds(5));
    now = std::clock();
  } while (now - before > CLOCKS_PER_SEC / 1000);
}

void PrintTimes(const std::string& model, Setting setting, const char* state,
                const PairedTimes& times, double apart) {
  std::printf("%-24s threads %d batch %d  ours %9.3f ms", NameOf(model).c_str(), setting.threads,
              static_cast<int>(setting.batch), 1e3 * Median(times.ours));
  if (!times.theirs.empty()) {
    std::printf("  onnxruntime %9.3f ms  ratio %.2f  apart %.1e  %s", 1e3 * Median(times.theirs),
                Median(times.ratios), apart, state);
  }
  std::printf("\n");
  std::fflush(stdout);
}

constexpr double kShortSeconds = 1e-3;   // of one side, before it is the other's turn
constexpr double kAwakeSeconds = 10e-3;  // the same with several threads, once they are awake

using RatioByState = std::map<CoreState, double>;

// The median ratios, theirs over ours.
absl::StatusOr<RatioByState> Compare(const Options& options, const std::string& model,
                                     Setting setting) {
  ABSL_ASSIGN_OR_RETURN(const ImageSpec image, ImageOf(model));
  const Source images = Images(image, setting.batch);
  ABSL_ASSIGN_OR_RETURN(const auto ours, Side::Ours(model, setting.threads, options.precision));
  std::unique_ptr<Side> theirs;
  if (!options.library.empty()) {
    ABSL_ASSIGN_OR_RETURN(theirs, Side::Theirs(options.library, model, setting.threads));
  }
  absl::Status status;
  std::vector<float> answers[2];
  int runs = 1;  // in a row, of short models
  const auto measure = [&](Side& side, std::vector<float>* answer) {
    const auto run = [&] {
      for (int i = 0; i < runs; ++i) {
        absl::StatusOr<std::vector<float>> result = side.Run(images);
        status.Update(result.status());
        if (result.ok()) *answer = *std::move(result);
      }
    };
    if (setting.threads == 1) return Seconds(run) / runs;
    AwaitIdleThreads();
    status.Update(side.Run(images).status());
    return WallSeconds(run) / runs;
  };
  const CoreProbe probe;
  const auto look = [&] { return setting.threads == 1 ? probe.Now() : CoreState::kUnknown; };
  TimesByState times;
  for (int round = -2; round < options.rounds; ++round) {  // two warm up
    const CoreState before = look();
    const double a = measure(*ours, &answers[0]);
    const double b = theirs != nullptr ? measure(*theirs, &answers[1]) : a;
    ABSL_RETURN_IF_ERROR(status);
    const double turn = setting.threads == 1 ? kShortSeconds : kAwakeSeconds;
    if (round < 0) runs = static_cast<int>(std::clamp(turn / a, 1.0, 100.0));
    if (round >= 0) times[Both(before, look())].Add(a, b);
  }
  RatioByState ratios;
  for (auto& [state, pairs] : WithoutBetween(std::move(times))) {
    ratios[state] = Median(pairs.ratios);
    PairedTimes printed = pairs;
    if (theirs == nullptr) printed.theirs.clear();
    PrintTimes(model, setting, CoreStateName(state), printed,
               theirs == nullptr ? 0 : testing::RelativeL2(answers[0], answers[1]));
  }
  return ratios;
}

void PrintMean(Setting setting, const char* state, const std::vector<double>& ratios) {
  double logarithms = 0;
  for (double ratio : ratios) logarithms += std::log(ratio);
  std::printf("threads %d batch %d: geometric mean of the ratios %.2f  %s\n", setting.threads,
              static_cast<int>(setting.batch),
              std::exp(logarithms / static_cast<double>(ratios.size())), state);
}

absl::Status Measure(const Options& options) {
  for (size_t i = 0; options.loads && i < options.models.size(); ++i)
    ABSL_RETURN_IF_ERROR(PrintLoading(options, options.models[i]));
  for (int threads : options.threads) {
    const int count = threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
    for (int64_t batch : options.batches) {
      std::map<CoreState, std::vector<double>> ratios;
      for (const std::string& model : options.models) {
        ABSL_ASSIGN_OR_RETURN(const RatioByState of_model, Compare(options, model, {count, batch}));
        for (const auto& [state, ratio] : of_model) ratios[state].push_back(ratio);
      }
      for (const auto& [state, of_models] : ratios)
        PrintMean({count, batch}, CoreStateName(state), of_models);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) {
  tilewire::bench::Options options;
  CLI::App app{"Times whole models, ours against ONNX Runtime"};
  app.add_option("models", options.models, "ONNX files of one input")->required();
  app.add_option("--onnxruntime", options.library, "libonnxruntime.so, version 1.5 or later")
      ->envname("ONNXRUNTIME_LIBRARY");
  app.add_option("--batch", options.batches, "images a run")->delimiter(',');
  app.add_option("--threads", options.threads, "compute threads; 0: all cores")->delimiter(',');
  app.add_option("--rounds", options.rounds, "measured runs of each")->check(CLI::PositiveNumber);
  app.add_option_function<std::string>(
      "--precision",
      [&options](const std::string& name) {
        const auto precision = tilewire::ParsePrecision(name);
        if (!precision.ok()) throw CLI::ValidationError(std::string(precision.status().message()));
        options.precision = *precision;
      },
      "ours: exact, fast or bf16");
  app.add_flag("--load,!--no-load", options.loads, "time to the first answer, and memory");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = tilewire::bench::Measure(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::fflush(stdout);
  _exit(status.ok() ? 0 : 1);  // not through the peer's own end
}
