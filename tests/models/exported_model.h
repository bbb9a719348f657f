// SPDX-License-Identifier: Apache-2.0
//
// A model that a script exported beside what torch computed for it, loaded through the facade. The
// environment variable TILEWIRE_TEST_MODEL names it: a folder beside this file.
#ifndef TESTS_MODELS_EXPORTED_MODEL_H_
#define TESTS_MODELS_EXPORTED_MODEL_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "engine/explanation.h"
#include "gtest/gtest.h"
#include "tests/support/float_tensors.h"

namespace tilewire::testing {

// The contents of the file; nothing where it cannot be read.
template <typename T>
std::vector<T> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<T> elements(file ? static_cast<size_t>(file.tellg()) / sizeof(T) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(elements.data()), elements.size() * sizeof(T));
  return elements;
}

class ExportedModelTest : public ::testing::Test {
 protected:
  static std::string Name() { return std::getenv("TILEWIRE_TEST_MODEL"); }
  static std::string PathOf(absl::string_view file) {
    return absl::StrCat("tests/models/", Name(), "/", file);
  }

  void SetUp() override {
    auto engine = Engine::Create({.threads = 2});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    // The file itself, not the link that the test is given: weights beside a model are not read
    // through links.
    auto model = engine_->LoadModel(std::filesystem::canonical(PathOf("1/model.onnx")));
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  // The first output for images in nchw, which are sent in `layout`.
  std::vector<float> Run(const std::vector<float>& images, int64_t batch, Layout layout) {
    Dims dims = model_->signature().inputs[0].dims;
    dims[0] = batch;
    const std::vector<float> bytes = layout == Layout::kNhwc ? ChannelsLast(images, dims) : images;
    const InputTensor input{dims, layout, {BytesOf(bytes)}};
    auto outputs = model_->Run({&input, 1}, {}, {});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? FloatsOf(outputs->front().bytes) : std::vector<float>();
  }

  // Batches of 1, 3 and 8 within `bound` of torch's relative L2, with the same bits for nchw and
  // nhwc.
  void ExpectTorchsOutputs(double bound) {
    for (int64_t batch : {1, 3, 8}) {
      const auto images = ReadAll<float>(PathOf(absl::StrCat("input_", batch, ".f32")));
      const auto want = ReadAll<float>(PathOf(absl::StrCat("output_", batch, ".f32")));
      Dims dims = model_->signature().inputs[0].dims;
      dims[0] = batch;
      ASSERT_EQ(images.size(), static_cast<size_t>(ElementCount(dims).value()));
      const std::vector<float> got = Run(images, batch, Layout::kNchw);
      const double error = RelativeL2(got, want);
      RecordProperty(absl::StrCat("relative_l2_", batch), absl::StrCat(error));
      EXPECT_LE(error, bound) << "batch " << batch;
      EXPECT_TRUE(BytesOf(got) == BytesOf(Run(images, batch, Layout::kNhwc)));
    }
  }

  void ExpectTheBitsOfImagesAlone() {
    const auto images = ReadAll<float>(PathOf("input_8.f32"));
    const std::vector<float> together = Run(images, 8, Layout::kNchw);
    std::vector<float> alone;
    for (int image = 0; image < 8; ++image) {
      const auto first = images.begin() + image * images.size() / 8;
      const std::vector<float> one(first, first + images.size() / 8);
      const std::vector<float> result = Run(one, 1, Layout::kNchw);
      alone.insert(alone.end(), result.begin(), result.end());
    }
    EXPECT_TRUE(BytesOf(together) == BytesOf(alone));
  }

  std::unique_ptr<Engine> engine_;
  std::shared_ptr<const Model> model_;
};

}  // namespace tilewire::testing

#endif  // TESTS_MODELS_EXPORTED_MODEL_H_
