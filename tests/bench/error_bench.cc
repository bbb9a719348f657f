// SPDX-License-Identifier: Apache-2.0
//
// The errors of each precision, and of torch's f32, against f64:
//
//   error_bench --batch=3 DIR/resnet50 DIR/vgg16
//
// Each folder is what tests/models/export_torchvision.py wrote with --f64: 1/model.onnx, and by
// batch the input, torch's answer in f32 and its answer in f64. Errors are relative ones (L2) of
// the first output. error_bench_on_tiles is the same with matrix tiles (AMX) in software where the
// machine has none: what it prints holds for machines that have them.
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/isa.h"
#include "engine/engine.h"
#include "tests/bench/image_model.h"
#include "tests/support/float_tensors.h"

namespace tilewire::bench {
namespace {

template <typename T>
absl::StatusOr<std::vector<T>> ReadNumbers(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return absl::NotFoundError(absl::StrCat("no ", path, "; export the model with --f64"));
  std::vector<T> numbers(static_cast<size_t>(file.tellg()) / sizeof(T));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(T)));
  return numbers;
}

absl::StatusOr<std::vector<float>> AnswerOf(const std::string& path, Precision precision,
                                            const std::vector<float>& images, int64_t batch) {
  ABSL_ASSIGN_OR_RETURN(const auto engine, Engine::Create({.threads = 2, .precision = precision}));
  ABSL_ASSIGN_OR_RETURN(const auto model, engine->LoadModel(path));
  ABSL_ASSIGN_OR_RETURN(Dims dims, ImageDimsOf(*model, path));
  dims[0] = batch;
  const InputTensor input{dims, Layout::kNchw, {testing::BytesOf(images)}};
  ABSL_ASSIGN_OR_RETURN(const auto outputs, model->Run({&input, 1}, {}, {}));
  return testing::FloatsOf(outputs[0].bytes);
}

absl::Status PrintErrors(const std::string& folder, int64_t batch) {
  const std::string path = absl::StrCat(folder, "/1/model.onnx");
  const auto of = [&](absl::string_view name) { return absl::StrCat(folder, "/", name, batch); };
  ABSL_ASSIGN_OR_RETURN(const auto images, ReadNumbers<float>(of("input_") + ".f32"));
  ABSL_ASSIGN_OR_RETURN(const auto torch, ReadNumbers<float>(of("output_") + ".f32"));
  ABSL_ASSIGN_OR_RETURN(const auto expected, ReadNumbers<double>(of("output_") + ".f64"));
  std::printf("%-20s torch %.1e", NameOf(path).c_str(), testing::RelativeL2(torch, expected));
  for (const Precision precision : {Precision::kExact, Precision::kFast, Precision::kBf16}) {
    ABSL_ASSIGN_OR_RETURN(const auto answer, AnswerOf(path, precision, images, batch));
    std::printf("  %s %.1e", std::string(PrecisionName(precision)).c_str(),
                testing::RelativeL2(answer, expected));
    std::fflush(stdout);
  }
  std::printf("\n");
  return absl::OkStatus();
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) {
  std::vector<std::string> folders;
  int64_t batch = 1;
  CLI::App app{"Errors of each precision and of torch's f32 against f64"};
  app.add_option("folders", folders, "what export_torchvision.py --f64 wrote")->required();
  app.add_option("--batch", batch, "images at a time")->check(CLI::IsMember({1, 3, 8}));
  CLI11_PARSE(app, argc, argv);
  std::printf("instruction set: %s\n",
              std::string(tilewire::cpu::IsaName(tilewire::cpu::BestIsa())).c_str());
  for (const std::string& folder : folders) {
    const absl::Status status = tilewire::bench::PrintErrors(folder, batch);
    if (status.ok()) continue;
    std::fprintf(stderr, "\n%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
