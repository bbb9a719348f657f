// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/networks/work.h"

#include <algorithm>
#include <variant>

namespace tilewire::testing {
namespace {

using network::Network;
using network::Operation;

constexpr int64_t kTooMuch = int64_t{1} << 40;

int64_t CountOf(const Dims& dims) {
  return std::min(ElementCount(dims).value_or(kTooMuch), kTooMuch);
}

// Products per element of the result; windows per element of the source count for that.
class Factor {
 public:
  Factor(const Network& network, const Operation& operation)
      : network_(network), operation_(operation) {}

  int64_t operator()(const network::Convolution& c) const { return PerOutput(c.weights.dims); }
  int64_t operator()(const network::Deconvolution& d) const { return PerOutput(d.weights.dims); }
  int64_t operator()(const network::ComputedConvolution&) const { return PerOutput(Src(1)); }
  int64_t operator()(const network::ComputedDeconvolution&) const {
    return CountOf(Src(1)) / std::max<int64_t>(1, Src(1)[1]);
  }
  int64_t operator()(const network::InnerProduct& p) const { return PerOutput(p.weights.dims); }
  int64_t operator()(const network::Pooling& p) const { return CountOf(p.kernel); }
  int64_t operator()(const network::MaxWindow& w) const { return CountOf(w.kernel); }
  int64_t operator()(const network::Matmul&) const { return Src(0).back(); }
  int64_t operator()(const network::IntegerMatmul&) const { return Src(0).back(); }
  int64_t operator()(const network::Interpolate& i) const { return i.taps; }
  int64_t operator()(const network::Lrn& l) const { return l.size; }
  int64_t operator()(const network::RoiAlign& r) const {
    return std::max<int64_t>(64, r.samples_per_bin * r.samples_per_bin);
  }
  int64_t operator()(const network::Rnn&) const { return 64; }
  template <typename Other>
  int64_t operator()(const Other&) const {
    return 1;
  }

 private:
  const Dims& Src(int i) const { return network_.values[operation_.srcs[i]].dims; }
  static int64_t PerOutput(const Dims& weights) {
    return CountOf(weights) / std::max<int64_t>(1, weights[0]);
  }

  const Network& network_;
  const Operation& operation_;
};

}  // namespace

int64_t WorkOf(const Network& network) {
  int64_t work = 0;
  for (const Operation& operation : network.operations) {
    const int64_t factor = std::visit(Factor(network, operation), operation.params);
    const int64_t count = CountOf(network.values[operation.dst].dims);
    if (factor > kTooMuch / std::max<int64_t>(1, count)) return kTooMuch;
    work = std::min(work + count * factor, kTooMuch);
    for (network::ValueId src : operation.srcs)
      work = std::min(work + CountOf(network.values[src].dims), kTooMuch);
  }
  return work;
}

}  // namespace tilewire::testing
