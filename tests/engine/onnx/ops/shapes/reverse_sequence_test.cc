// SPDX-License-Identifier: Apache-2.0
//
// ReverseSequence (engine/onnx/ops/shapes/reverse_sequence.cc) by known and by computed lengths.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(ReverseSequenceTest, ByKnownAndByComputedLengths) {
  const Elements x = {0, 1, 2, 3, 4, 5};
  const struct {
    std::vector<onnx::AttributeProto> attributes;
    std::vector<int64_t> dims, lengths;
    Elements expected;
  } cases[] = {{{}, {3, 2}, {3, 2}, {4, 3, 2, 1, 0, 5}},
               {{Int("time_axis", 1), Int("batch_axis", 0)}, {2, 3}, {1, 3}, {0, 1, 2, 5, 4, 3}},
               {{}, {3, 1, 2}, {2}, {2, 3, 0, 1, 4, 5}},
               {{}, {3, 2}, {0, 1}, {0, 1, 2, 3, 4, 5}}};
  for (const auto& one : cases) {
    const Dims dims(one.dims.begin(), one.dims.end());
    const auto count = static_cast<int64_t>(one.lengths.size());
    OnnxBuilder known(13), computed(13);
    known.Input("x", one.dims).Integers("n", one.lengths);
    known.Node("ReverseSequence", {"x", "n"}, {"y"}, one.attributes).Output("y");
    EXPECT_EQ(Computed(known, {dims}, {x})[0], one.expected);
    computed.Input("x", one.dims).Input("n", {count}, onnx::TensorProto::INT64);
    computed.Node("ReverseSequence", {"x", "n"}, {"y"}, one.attributes).Output("y");
    const Elements lengths(one.lengths.begin(), one.lengths.end());
    EXPECT_EQ(Computed(computed, {dims, {count}}, {x, lengths})[0], one.expected);
  }
}

TEST(ReverseSequenceTest, Refusals) {
  ExpectInvalid({
      {"two times",
       "ReverseSequence",
       {"m", "four"},
       {Int("batch_axis", 0)},
       "time_axis 0 and batch_axis 0 of [2,3]"},
      {"lengths of no batch",
       "ReverseSequence",
       {"m", "four"},
       {},
       "lengths of dims [1], expected [3]"},
      {"beyond the end",
       "ReverseSequence",
       {"x", "shape"},
       {Int("time_axis", 1), Int("batch_axis", 0)},
       "a length of 7 in a dimension of 4: allowed are 0 to 4"},
  });
}

}  // namespace
}  // namespace tilewire::reader
