// SPDX-License-Identifier: Apache-2.0
//
// The parts that oneDNN's side has for every operation: a primitive with its tensors, filled with
// numbers, and the choice of the layout in which it is fastest.
// Thread-compatible.
#ifndef TESTS_BENCH_ONEDNN_SIDE_H_
#define TESTS_BENCH_ONEDNN_SIDE_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/bench/operation.h"
#include "tests/bench/stopwatch.h"
#include "tests/support/random_tensor.h"

namespace tilewire::bench {

inline dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attribute;
  attribute.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attribute;
}

// A derived class describes the primitive and ends with Finish().
class OneDnnSide : public RunnableOperation {
 public:
  using Tag = dnnl::memory::format_tag;

  void Run() override {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }
  std::string name() const override { return name_; }

 protected:
  static constexpr auto kFloat = dnnl::memory::data_type::f32;

  // Activations in `tag`, where the peer does not choose itself.
  OneDnnSide(const Operation& operation, Tag tag) : op_(operation), tag_(tag) {}

  dnnl::memory::desc Image(int64_t channels, int64_t size, Tag tag) const {
    return dnnl::memory::desc({op_.at("n"), channels, size, size}, kFloat, tag);
  }
  dnnl::memory::desc Image() const { return Image(op_.at("c"), op_.at("in"), tag_); }

  // Contents that an earlier primitive wrote stay.
  void Bring(int argument, const dnnl::memory::desc& desc) {
    if (arguments_.count(argument) != 0 && argument != DNNL_ARG_SCRATCHPAD) return;
    dnnl::memory tensor(desc, engine_);
    if (desc.data_type() == kFloat) {
      testing::FillUniform(
          {static_cast<float*>(tensor.get_data_handle()), desc.get_size() / sizeof(float)},
          argument);
    } else {
      testing::FillGarbage(tensor.get_data_handle(), desc.get_size(), argument);
    }
    arguments_[argument] = std::move(tensor);
  }
  template <typename Primitive, typename Description>
  void Finish(const Description& description) {
    name_ = description.impl_info_str();
    primitive_ = Primitive(description);
    Bring(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  }

  const Operation op_;
  const Tag tag_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};

 private:
  dnnl::stream stream_{engine_};
  dnnl::primitive primitive_;
  std::string name_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// The shortest of a few runs, in seconds.
inline double ShortestRun(RunnableOperation* operation) {
  constexpr int kRuns = 5;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRuns; ++i) best = std::min(best, Seconds([&] { operation->Run(); }));
  return best;
}

// A Side of the tag in which it is the fastest; ends the process where there is none.
template <typename Side>
std::unique_ptr<RunnableOperation> FastestSide(const Operation& operation,
                                               const std::vector<OneDnnSide::Tag>& tags) {
  std::unique_ptr<Side> best;
  double best_time = 0;
  for (OneDnnSide::Tag tag : tags) {
    std::unique_ptr<Side> candidate;
    try {
      candidate = std::make_unique<Side>(operation, tag);
    } catch (const dnnl::error&) {
      continue;  // not in this layout
    }
    const double time = ShortestRun(candidate.get());
    if (best != nullptr && time >= best_time) continue;
    best = std::move(candidate);
    best_time = time;
  }
  if (best == nullptr) {
    std::fprintf(stderr, "%s: oneDNN does not implement it\n", operation.name.c_str());
    std::exit(1);
  }
  return best;
}

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_ONEDNN_SIDE_H_
