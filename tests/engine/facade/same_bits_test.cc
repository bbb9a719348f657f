// SPDX-License-Identifier: Apache-2.0
//
// Models of integers, of halves, of products of many channels, and with sizes that are computed:
// the answer of a request has the same bits with any number of threads, in a batch and alone, and
// beside other requests.
#include <thread>
#include <vector>

#include "engine/base/precision.h"
#include "gtest/gtest.h"
#include "tests/engine/facade/typed_model.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

constexpr int kImages = 5;

struct Subject {
  const char* why;
  OnnxBuilder model;
  Dims image;            // the dims of an input of one image
  int64_t element_size;  // of the input
  std::string images;    // the bytes of kImages
};

template <typename T>
std::string ImagesOf(const Dims& dims, T (*element)(int64_t)) {
  std::vector<T> elements(kImages * *ElementCount(dims));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = element(static_cast<int64_t>(i));
  return Bytes(elements);
}

float Real(int64_t i) { return static_cast<float>(i * 37 % 101) / 101 - 0.5f; }

Subject WideIntegers() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 40}, TensorProto::INT64);
  std::vector<int64_t> weights(40 * 33);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int64_t>(i * i) - 5000;
  model.Tensor("w", {40, 33}, TensorProto::INT64)->set_raw_data(Bytes(weights));
  model.Node("MatMul", {"x", "w"}, {"p"}).Integers("k", {5});
  model.Node("TopK", {"p", "k"}, {"y", "at"}).Output("y", TensorProto::INT64);
  const Dims dims = {1, 40};
  const auto element = [](int64_t i) -> int64_t { return (i * 977 % 1009 - 500) << 40; };
  return {"64-bit integers", model, dims, 8, ImagesOf<int64_t>(dims, element)};
}

Subject ShortIntegers() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 6, 9, 7}).Floats("s", {}, {1.0f / 128}).Floats("ws", {}, {1.0f / 64});
  model.Tensor("z", {}, TensorProto::UINT8)->set_raw_data(std::string(1, '\x80'));
  model.Tensor("wz", {}, TensorProto::INT8)->set_raw_data(std::string(1, '\0'));
  model.Bytes("w", {10, 6, 3, 3}, true).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Node("QLinearConv", {"q", "s", "z", "w", "ws", "wz", "s", "z"}, {"c"});
  model.Node("DequantizeLinear", {"c", "s", "z"}, {"y"}).Output("y");
  const Dims dims = {1, 6, 9, 7};
  return {"8-bit integers", model, dims, 4, ImagesOf<float>(dims, Real)};
}

Subject Halves() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 6, 9, 7}, TensorProto::FLOAT16);
  std::vector<uint16_t> weights(10 * 6 * 3 * 3);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<uint16_t>(0x3000 + i);
  model.Tensor("w", {10, 6, 3, 3}, TensorProto::FLOAT16)->set_raw_data(Bytes(weights));
  model.Node("Conv", {"x", "w"}, {"c"}).Node("Tanh", {"c"}, {"y"});
  model.Output("y", TensorProto::FLOAT16);
  const Dims dims = {1, 6, 9, 7};
  const auto element = [](int64_t i) { return static_cast<uint16_t>(0x2000 + i * 37 % 0x1c00); };
  return {"halves", model, dims, 2, ImagesOf<uint16_t>(dims, element)};
}

// Convolutions and products that may be computed less exactly, some of them banded.
Subject ManyChannels() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 24, 19, 17}).Floats("w", {48, 24, 1, 1}).Floats("v", {36, 48, 3, 3});
  model.Node("Conv", {"x", "w"}, {"a"}).Node("Relu", {"a"}, {"b"});
  model.Node("Conv", {"b", "v"}, {"c"}).Integers("strides", {2, 2});
  model.Node("GlobalAveragePool", {"c"}, {"d"}).Node("Flatten", {"d"}, {"e"});
  model.Floats("u", {36, 33}).Node("MatMul", {"e", "u"}, {"y"}).Output("y");
  const Dims dims = {1, 24, 19, 17};
  return {"many channels", model, dims, 4, ImagesOf<float>(dims, Real)};
}

// Each image keeps its elements above 0, as many in every image; a stage ends before these.
Subject Found() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 64}).Floats("w", {8, 8}).Integers("eight", {-1, 8});
  model.Node("Relu", {"x"}, {"r"}).Node("NonZero", {"r"}, {"at"});
  model.Node("Transpose", {"at"}, {"rows"}).Node("GatherND", {"r", "rows"}, {"found"});
  model.Node("Reshape", {"found", "eight"}, {"tiles"}).Node("MatMul", {"tiles", "w"}, {"p"});
  model.Node("Tanh", {"p"}, {"y"}).Output("y");
  const Dims dims = {1, 64};
  const auto element = [](int64_t i) { return i % 2 == 0 ? -1.0f : 0.25f + Real(i % 64) / 8; };
  return {"a computed size", model, dims, 4, ImagesOf<float>(dims, element)};
}

// The answer for `count` images from `first` on.
std::string AnswerFor(const Subject& subject, const Model& model, int first, int count) {
  const size_t size = *ElementCount(subject.image) * subject.element_size;
  Dims dims = subject.image;
  dims[0] = count;
  const auto answer = AnswerOf(model, {{dims, subject.images.substr(first * size, count * size)}});
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) return "";
  return std::string(reinterpret_cast<const char*>(answer->bytes.data()), answer->bytes.size());
}

// The answer for all images on an engine of so many threads, once each image has been asked for
// alone, many at a time, and has got its part of it.
std::string AnswerOfAnyLoad(const Subject& subject, const std::string& path, int threads,
                            Precision precision) {
  const auto engine = Engine::Create({.threads = threads, .precision = precision});
  EXPECT_TRUE(engine.ok()) << engine.status();
  const auto model = (*engine)->LoadModel(path);
  EXPECT_TRUE(model.ok()) << model.status();
  const std::string together = AnswerFor(subject, **model, 0, kImages);
  EXPECT_FALSE(together.empty());
  std::vector<std::string> alone(kImages);
  std::vector<std::thread> callers;
  for (int image = 0; image < kImages; ++image) {
    callers.emplace_back([&, image] {
      for (int i = 0; i < 10; ++i) alone[image] = AnswerFor(subject, **model, image, 1);
    });
  }
  for (std::thread& caller : callers) caller.join();
  std::string joined;
  for (const std::string& answer : alone) joined += answer;
  EXPECT_TRUE(joined == together);
  return together;
}

TEST(SameBitsTest, WhateverTheThreadsTheBatchAndTheLoad) {
  for (const Subject& subject :
       {WideIntegers(), ShortIntegers(), Halves(), ManyChannels(), Found()}) {
    SCOPED_TRACE(subject.why);
    const std::string path = ::testing::TempDir() + "/same_bits.onnx";
    WriteFile(path, subject.model.Serialize());
    for (const Precision precision : {Precision::kExact, Precision::kFast, Precision::kBf16}) {
      SCOPED_TRACE(PrecisionName(precision));
      const std::string expected = AnswerOfAnyLoad(subject, path, 1, precision);
      for (const int threads : {2, 4}) {
        SCOPED_TRACE(threads);
        EXPECT_TRUE(AnswerOfAnyLoad(subject, path, threads, precision) == expected);
      }
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
