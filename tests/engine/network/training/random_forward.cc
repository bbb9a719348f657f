// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/network/training/random_forward.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {
namespace {

using functions::EltwiseAlgorithm;
using network::Pooling;
using network::ValueId;

constexpr int64_t kBatch = 2;

// Appends operations to a network, each of which reads earlier values.
class ForwardMaker {
 public:
  explicit ForwardMaker(uint64_t number) : random_(number) {
    values_.push_back(b_.Input("x", {kBatch, 16, 6, 6}));
    values_.push_back(Convolved(values_[0], 16));
  }

  network::Network Make() {
    const int64_t count = random_.Integer(6, 14);
    for (int64_t i = 0; i < count; ++i) Append();
    std::vector<ValueId> rows;
    for (ValueId value : values_) {
      const ValueId mean =
          b_.GlobalAverage(Name(), b_.Elementwise(Name(), value, {EltwiseAlgorithm::kTanh}));
      rows.push_back(b_.Reshaped(Name(), mean, {kBatch, b_.dims(value)[1]}));
    }
    return b_.Finish({b_.ConcatOf("all", rows)});
  }

 private:
  std::string Name() { return absl::StrCat("n", ++names_); }

  ValueId Any() { return values_[random_.Integer(0, static_cast<int64_t>(values_.size()) - 1)]; }

  // Another value of the same dims, but for the channels if `any_channels`; the value itself if
  // there is none.
  ValueId Like(ValueId value, bool any_channels) {
    for (int tries = 0; tries < 8; ++tries) {
      const ValueId other = Any();
      Dims dims = b_.dims(other);
      if (any_channels) dims[1] = b_.dims(value)[1];
      if (dims == b_.dims(value) && other != value) return other;
    }
    return value;
  }

  ValueId Convolved(ValueId src, int64_t channels, bool has_bias = true) {
    const std::string name = Name();
    Dims dims = b_.dims(src);
    const Dims weights = {channels, dims[1], 3, 3};
    dims[1] = channels;
    const network::ComputedConvolution window{1, {1, 1}, {0, 0}, {1, 1}, {1, 1}};
    const ValueId w = b_.Elementwise(name + ".scaled", b_.Input(name + ".w", weights),
                                     {EltwiseAlgorithm::kLinear, 0.15f, 0});
    std::vector<ValueId> srcs = {src, w};
    if (has_bias) srcs.push_back(b_.Input(name + ".b", {channels}));
    return b_.AddOperation(name, window, std::move(srcs), dims);
  }

  // Along the last dimension.
  ValueId RowsNormalized(ValueId src) {
    const Dims dims = b_.dims(src), row = {dims.back()};
    const std::string name = Name();
    network::LayerNormalization norm{.epsilon = 0.1f, .reads_parameters = true};
    return b_.AddOperation(
        name, norm, {src, b_.Input(name + ".scale", row), b_.Input(name + ".shift", row)}, dims);
  }

  ValueId Joined(ValueId src) {
    constexpr int64_t kMostChannels = 64;
    const ValueId other = Like(src, true);
    if (b_.dims(src)[1] + b_.dims(other)[1] > kMostChannels) return Part(src);
    return b_.ConcatOf(Name(), {src, other});
  }

  // Some neighbouring channels.
  ValueId Part(ValueId src) {
    Dims dims = b_.dims(src);
    const int64_t size = random_.Integer(1, dims[1]), begin = random_.Integer(0, dims[1] - size);
    dims[1] = size;
    return b_.AddOperation(Name(), network::Select{{{}, {{begin, 1, size}}, {}, {}}}, {src}, dims);
  }

  ValueId Pooled(ValueId src) {
    const auto algorithm = static_cast<Pooling::Algorithm>(random_.Integer(0, 2));
    const bool halves = b_.dims(src)[2] >= 4 && random_.Integer(0, 1) == 0;
    return halves ? b_.Pool(Name(), src, algorithm, 2, 2, 0)
                  : b_.Pool(Name(), src, algorithm, 3, 1, 1);
  }

  void Append() {
    const ValueId src = Any();
    switch (random_.Integer(0, 10)) {
      case 0:
      case 1:
        values_.push_back(Convolved(src, random_.Integer(1, 3) * 8));
        break;
      case 2: {
        // A bias before it would have no gradient but what rounding leaves.
        const ValueId conv = Convolved(src, 16, /*has_bias=*/false);
        values_.push_back(b_.Normalized(Name(), conv));
        break;
      }
      case 3:
      case 4:
        values_.push_back(b_.Elementwise(Name(), src, {EltwiseAlgorithm::kRelu}));
        break;
      case 5:
        values_.push_back(Pooled(src));
        break;
      case 6:
        values_.push_back(b_.SumOf(Name(), {src, Like(src, false), src}));
        break;
      case 7:
        values_.push_back(Joined(src));
        break;
      case 8:
        values_.push_back(Part(src));
        break;
      case 9:
        values_.push_back(RowsNormalized(src));
        break;
      default:
        values_.push_back(
            b_.AddOperation(Name(), network::Lrn{5, 0.5f, 0.75f, 1}, {src}, b_.dims(src)));
        break;
    }
  }

  Random random_;
  network::NetworkBuilder b_;
  std::vector<ValueId> values_;  // of four dimensions
  int names_ = 0;
};

}  // namespace

network::Network RandomForward(uint64_t number) { return ForwardMaker(number).Make(); }

}  // namespace tilewire::testing
