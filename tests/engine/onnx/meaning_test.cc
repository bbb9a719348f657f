// SPDX-License-Identifier: Apache-2.0
//
// Passes keep a network's meaning: random graphs of convolutions, batch norms, sums, activations,
// shuffles, linear layers of pixels, poolings and classifiers give the same numbers before and
// after all passes, and in a network for training.
#include <cmath>
#include <random>

#include "absl/algorithm/container.h"
#include "engine/network/passes/passes.h"
#include "tests/engine/onnx/fixture.h"

namespace tilewire::reader {
namespace {

constexpr int64_t kChannels = 6;

// Grows a graph node by node; every tensor but the last ones is [2, 6, 4, 4].
class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed) {
    model_.Input("x", {2, kChannels, 4, 4});
    model_.Integers("split", {2, 2, 3, 4, 4}).Integers("joined", {2, kChannels, 4, 4});
  }

  OnnxBuilder Build() {
    const int nodes = 3 + static_cast<int>(random_() % 10);
    for (int i = 0; i < nodes; ++i) AddNode(random_() % 9);
    const std::string last = tensors_.back();
    const bool pools = random_() % 2 == 0;
    const std::string small = pools ? New() : last;
    if (pools)
      model_.Node("MaxPool", {last}, {small},
                  {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
    model_.Node("Flatten", {small}, {"flat"})
        .Floats("f", {kChannels * (pools ? 4 : 16), 5})
        .Node("MatMul", {"flat", "f"}, {"p"});
    AddBatchNorm("p", 5);
    model_.Node("Relu", {Last()}, {"y"})
        .Output("y")
        .Output(tensors_[random_() % (tensors_.size() - 1)]);
    return std::move(model_);
  }

 private:
  const std::string& Last() const { return tensors_.back(); }
  std::string Any() {
    return tensors_[tensors_.size() - 1 - random_() % std::min<size_t>(tensors_.size(), 3)];
  }
  std::string New() {
    tensors_.push_back("t" + std::to_string(tensors_.size()));
    return tensors_.back();
  }

  void AddBatchNorm(const std::string& src, int64_t channels) {
    const std::string name = New();
    model_.Floats(name + ".g", {channels})
        .Floats(name + ".b", {channels})
        .Floats(name + ".m", {channels});
    model_.Floats(name + ".v", {channels}, std::vector<float>(channels, 0.7f));
    model_.Node("BatchNormalization", {src, name + ".g", name + ".b", name + ".m", name + ".v"},
                {name});
  }

  void AddConvolution(const std::string& src) {
    const std::string name = New();
    const int64_t groups = random_() % 2 == 0 ? 1 : 2;
    model_.Floats(name + ".w", {kChannels, kChannels / groups, 3, 3});
    model_.Node("Conv", {src, name + ".w"}, {name},
                {Ints("pads", {1, 1, 1, 1}), Int("group", groups)});
  }

  void AddShuffle(const std::string& src) {
    const std::string a = New() + "a", b = a + "b";
    model_.Node("Reshape", {src, "split"}, {a})
        .Node("Transpose", {a}, {b}, {Ints("perm", {0, 2, 1, 3, 4})});
    model_.Node("Reshape", {b, "joined"}, {Last()});
  }

  // One or two, with a bias or none, between transposes to the channels last and back.
  void AddLinears(const std::string& src) {
    std::string at = New() + "rows";
    model_.Node("Transpose", {src}, {at}, {Ints("perm", {0, 2, 3, 1})});
    for (uint32_t layers = 1 + random_() % 2; layers > 0; --layers) {
      const std::string w = at + "w", b = at + "b", sum = at + "s", next = at + "r";
      model_.Floats(w, {kChannels, kChannels}).Floats(b, {kChannels});
      model_.Node("MatMul", {at, w}, {at + "p"}).Node("Add", {b, at + "p"}, {sum});
      model_.Node("Relu", {random_() % 2 == 0 ? sum : at + "p"}, {next});
      at = next;
    }
    model_.Node("Transpose", {at}, {Last()}, {Ints("perm", {0, 3, 1, 2})});
  }

  void AddNode(uint32_t kind) {
    const std::string a = Any(), b = Any();
    switch (kind) {
      case 0:
      case 1:
        return AddConvolution(a);
      case 2:
      case 3:
        return AddBatchNorm(a, kChannels);
      case 4:
        model_.Node("Add", {a, b}, {New()});
        return;
      case 5:
        model_.Node("Relu", {a}, {New()});
        return;
      case 6:
        return AddShuffle(a);
      case 7:
        return AddLinears(a);
      default:
        model_.Node("MaxPool", {a}, {New()},
                    {Ints("kernel_shape", {3, 3}), Ints("pads", {1, 1, 1, 1})});
    }
  }

  std::mt19937 random_;
  OnnxBuilder model_;
  std::vector<std::string> tensors_ = {"x"};
};

// An image of the dims of every RandomModel.
const Dims kImageDims = {2, kChannels, 4, 4};
Elements WavyImage() {
  Elements image(*ElementCount(kImageDims));
  for (size_t i = 0; i < image.size(); ++i) image[i] = std::sin(static_cast<double>(i));
  return image;
}

// Folded factors are rounded to f32 at each fold; a dozen layers in a row multiply that.
void ExpectSameNumbers(const std::vector<Elements>& before, const std::vector<Elements>& after) {
  ASSERT_EQ(before.size(), after.size());
  for (size_t o = 0; o < before.size(); ++o) {
    double largest = 0, difference = 0;
    ASSERT_EQ(before[o].size(), after[o].size());
    for (size_t i = 0; i < before[o].size(); ++i) {
      largest = std::max(largest, std::abs(before[o][i]));
      difference = std::max(difference, std::abs(before[o][i] - after[o][i]));
    }
    ASSERT_LE(difference, 1e-5 * largest) << "output " << o;
  }
}

TEST(MeaningTest, PassesKeepTheNumbers) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    absl::StatusOr<network::Network> network = Built(RandomModel(seed).Build(), {kImageDims});
    ASSERT_TRUE(network.ok()) << network.status();
    const std::string before_text = NetworkToText(*network);
    const std::vector<Elements> before = Interpret(*network, {WavyImage()});
    network::RunPasses(&*network);
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", before_text, NetworkToText(*network)));
    ExpectSameNumbers(before, Interpret(*network, {WavyImage()}));
    if (HasFatalFailure()) return;
  }
}

// With the statistics that the file has; every initializer of real numbers but these learns.
TEST(MeaningTest, NetworksForTrainingGiveTheSameNumbers) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const auto model = Open(RandomModel(seed).Build());
    ASSERT_TRUE(model.ok()) << model.status();
    const absl::StatusOr<network::Network> inference = (*model)->Specialize({kImageDims});
    ASSERT_TRUE(inference.ok()) << inference.status();
    const absl::StatusOr<network::Network> training =
        (*model)->SpecializeForTraining({kImageDims}, {.uses_given_statistics = true});
    ASSERT_TRUE(training.ok()) << training.status();
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", NetworkToText(*training)));
    ExpectSameNumbers(Interpret(*inference, {WavyImage()}), Interpret(*training, {WavyImage()}));
    if (HasFatalFailure()) return;
    EXPECT_EQ(absl::c_count_if(training->parameters, [](const auto& one) { return one.learns; }),
              (*model)->Trainable().size());
  }
}

}  // namespace
}  // namespace tilewire::reader
