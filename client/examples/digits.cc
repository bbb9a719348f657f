// SPDX-License-Identifier: Apache-2.0
//
// Classifies the held-out digits, many requests at once, over one server or several replicas:
//   bazel-bin/client/digits 127.0.0.1:8001
//   bazel-bin/client/digits a:8001,b:8001
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "client/client.h"

namespace {

using tilewire::client::Client;
using tilewire::client::Result;
using tilewire::client::Tensor;

std::string ReadFile(const std::string& name) {
  std::ifstream file("deploy/models/digits/heldout/" + name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

constexpr int64_t kPixels = 3 * 24 * 20, kBatch = 40;

// The pixels of a batch, 0 to 255, as the model takes them: in [0, 1], nchw.
Tensor PicturesOf(const std::string& pixels, size_t first) {
  std::vector<float> values;
  for (const char c : pixels.substr(first * kPixels, kBatch * kPixels))
    values.push_back(static_cast<uint8_t>(c) / 255.0f);
  const int64_t count = static_cast<int64_t>(values.size()) / kPixels;
  return Tensor::FromFloats("image", {count, 3, 24, 20}, values);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto client = Client::Connect(argc > 1 ? argv[1] : "127.0.0.1:8001");
  if (!client.ok()) return Fail(client.status());
  const std::string pixels = ReadFile("images.u8"), labels = ReadFile("labels.u8");
  std::vector<std::future<absl::StatusOr<Result>>> answers;
  for (size_t first = 0; first < labels.size(); first += kBatch) {
    answers.push_back(
        (*client)->InferAsync("digits", {PicturesOf(pixels, first)},
                              {.outputs = {{"logits"}}, .deadline = absl::Seconds(60)}));
  }
  int right = 0;
  auto label = labels.begin();
  for (auto& answer : answers) {
    const absl::StatusOr<Result> result = answer.get();
    if (!result.ok()) return Fail(result.status());
    const auto logits = result->Find("logits")->View<float>();
    if (!logits.ok()) return Fail(logits.status());
    for (auto row = logits->begin(); row != logits->end(); row += 10)
      right += std::max_element(row, row + 10) - row == *label++;
  }
  std::printf("%d of %d digits are right\n", right, static_cast<int>(labels.size()));
  return 0;
}
