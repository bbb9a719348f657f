// SPDX-License-Identifier: Apache-2.0
//
// References of huge loops over tensors of few bytes (strides 0, or one result of many operations)
// end soon once their run is stopped, whatever the loop. So do the many steps of a sequence.
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/primitives/primitives.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kSide = int64_t{1} << 17;  // squared: operations of some minutes

// Every element is the same one in memory.
MemoryDesc OneElement(Dims dims) {
  const Dims strides(dims.size(), 0);
  return MemoryDesc::CreateStrided(std::move(dims), DataType::kF32, strides).value();
}
MemoryDesc Dense(Dims dims) {
  const absl::string_view pattern = absl::string_view("abcdef").substr(0, dims.size());
  return MemoryDesc::CreatePattern(std::move(dims), DataType::kF32, pattern).value();
}

MemoryDesc AnyLayout(Dims dims) {
  return MemoryDesc::CreateAny(std::move(dims), DataType::kF32).value();
}

struct HugeCase {
  const char* only;  // "": the best row
  OpDesc desc;
};

// A pooling whose window is the whole of a huge image.
template <typename Desc>
Desc HugeWindow() {
  Desc desc;
  desc.src = OneElement({1, 1, kSide, kSide});
  desc.dst = Dense({1, 1, 1, 1});
  desc.kernel = {kSide, kSide};
  desc.strides = {1, 1};
  desc.padding_left = {0, 0};
  return desc;
}

std::vector<HugeCase> HugeCases() {
  const MemoryDesc one = Dense({1, 1, 1, 1}), image = OneElement({1, 1, kSide, kSide});
  ConvolutionDesc convolution;
  convolution.src = convolution.weights = image;
  convolution.dst = one;
  convolution.strides = {1, 1};
  convolution.dilations = convolution.padding_left = convolution.padding_right = {0, 0};
  auto pooling = HugeWindow<PoolingDesc>();
  pooling.padding_right = {0, 0};
  auto window = HugeWindow<MaxWindowDesc>();
  window.dilations = {0, 0};
  ReductionDesc reduction;
  reduction.src = image;
  reduction.dst = one;
  InnerProductDesc inner_product;
  inner_product.src = inner_product.weights = image;
  inner_product.dst = Dense({1, 1});
  LrnDesc lrn;
  lrn.algorithm = LrnAlgorithm::kWithinChannel;
  lrn.src = lrn.dst = Dense({1, 1, 1024, 1024});
  lrn.local_size = 2047;
  TopKDesc top_k;
  top_k.src = top_k.dst = Dense({kSide});
  MatmulDesc matmul;
  matmul.src = OneElement({1 << 12, 1 << 20});
  matmul.weights = OneElement({1 << 20, 1 << 12});
  matmul.dst = Dense({1 << 12, 1 << 12});
  RnnDesc rnn;
  rnn.activations = {
      {EltwiseAlgorithm::kTanh}, {EltwiseAlgorithm::kTanh}, {EltwiseAlgorithm::kTanh}};
  rnn.src_layer = OneElement({1, 1, kSide});
  rnn.weights_layer = rnn.weights_iter = OneElement({1, 1, kSide, 4, kSide});
  rnn.dst_layer = Dense({1, 1, kSide});
  RnnDesc many_steps = rnn;  // of whatever row takes it: each step waits for the one before
  constexpr int64_t kSteps = 1 << 15, kStates = 1024;
  many_steps.src_layer = Dense({kSteps, 1, 1});
  many_steps.weights_layer = AnyLayout({1, 1, 1, 4, kStates});
  many_steps.weights_iter = AnyLayout({1, 1, kStates, 4, kStates});
  many_steps.dst_layer = Dense({kSteps, 1, kStates});
  const MemoryDesc keys = OneElement({1, 1, 1 << 20, 64});
  const MemoryDesc queries = Dense({1, 1, 1 << 12, 64});
  const AttentionDesc attention = {.srcs = {queries, keys, keys}, .dst = queries};
  return {{"convolution/reference", convolution},
          {"pooling/reference", pooling},
          {"max_window/reference", window},
          {"reduction/reference", reduction},
          {"inner_product/reference", inner_product},
          {"lrn/reference", lrn},
          {"top_k/reference", top_k},
          {"matmul/reference", matmul},
          {"rnn/reference", rnn},
          {"attention/reference", attention},
          {"", many_steps}};
}

double SecondsOf(clockid_t clock) {
  timespec time;
  EXPECT_EQ(clock_gettime(clock, &time), 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The thread's own time from the request to stop, which comes once it computes, to the end of the
// execution: what else the machine does adds nothing to it.
double SecondsToStop(const Primitive& primitive) {
  std::vector<std::vector<std::byte>> bytes;
  ExecuteArgs args;
  for (const ArgDesc& arg : primitive.info().args) {
    bytes.emplace_back(arg.desc.SizeBytes());
    args.Set(arg.arg, bytes.back().data());
  }
  std::atomic<bool> stop = false, ended = false;
  double end = 0;
  std::thread running([&] {
    const auto team = threading::Team::Serial().Until(&stop);
    EXPECT_TRUE(primitive.Execute(args, team).ok());
    end = SecondsOf(CLOCK_THREAD_CPUTIME_ID);
    ended = true;
    stop.wait(false);  // its clock is asked until then
  });
  clockid_t clock;
  EXPECT_EQ(pthread_getcpuclockid(running.native_handle(), &clock), 0);
  while (!ended && SecondsOf(clock) < 0.1) std::this_thread::yield();
  EXPECT_FALSE(ended) << "it has ended by itself";
  const double asked = SecondsOf(clock);
  stop = true;
  stop.notify_all();
  running.join();
  return end - asked;
}

TEST(StoppedReferencesTest, EndSoon) {
  for (const HugeCase& huge : HugeCases()) {
    SCOPED_TRACE(huge.only);
    CreateOptions options;
    options.only = huge.only;
    const auto primitive = CreatePrimitive(huge.desc, {}, options);
    ASSERT_TRUE(primitive.ok()) << primitive.status();
    const double seconds = SecondsToStop(**primitive);
    std::printf("%s: %.1f ms\n", huge.only, seconds * 1e3);
    EXPECT_LT(seconds, 5);  // the whole loop takes minutes
  }
}

}  // namespace
}  // namespace tilewire::testing
