// SPDX-License-Identifier: Apache-2.0
#include "client/primitive_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "client/primitive_parser.h"
#include "client/primitive_request.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

TEST(ParsePrimitive, ConvolutionDestinationFollows) {
  PrimitiveText text{.kind = "convolution", .srcs = {"2x16x9x7"}, .weights = "32x16x3x3"};
  text.strides = "2x1";
  text.padding = "1";
  text.post_ops = {"sum", "relu"};
  const auto desc = ParsePrimitive(text);
  ASSERT_THAT(desc, IsOk());
  EXPECT_THAT(desc->convolution().dst().dims(), ElementsAre(2, 32, 5, 7));
  EXPECT_EQ(desc->convolution().dst().tag(), "any");
  EXPECT_EQ(desc->convolution().src().tag(), "any");
  EXPECT_TRUE(desc->attributes().post_ops(0).has_sum());
  EXPECT_EQ(desc->attributes().post_ops(1).eltwise().op().algorithm(), v1::ELTWISE_RELU);
}

// The destination is described as if nothing were pooled.
TEST(ParsePrimitive, MaxPoolingIsAPostOp) {
  PrimitiveText text{.kind = "convolution", .srcs = {"1x16x9x7"}, .weights = "32x16x3x3"};
  text.post_ops = {"relu", "max_pooling"};
  const auto desc = ParsePrimitive(text);
  ASSERT_THAT(desc, IsOk());
  EXPECT_THAT(desc->convolution().dst().dims(), ElementsAre(1, 32, 7, 5));
  EXPECT_TRUE(desc->attributes().post_ops(1).has_max_pooling());
}

TEST(ParsePrimitive, GroupsSplitTheWeights) {
  PrimitiveText text{.kind = "convolution", .srcs = {"1x16x5x5:nhwc"}, .weights = "32x4x1x1"};
  text.groups = 4;
  const auto desc = ParsePrimitive(text);
  ASSERT_THAT(desc, IsOk());
  EXPECT_THAT(desc->convolution().weights().dims(), ElementsAre(4, 8, 4, 1, 1));
  EXPECT_EQ(desc->convolution().src().tag(), "nhwc");
}

TEST(ParsePrimitive, ConcatAddsAlongTheAxis) {
  const auto desc = ParsePrimitive({.kind = "concat", .srcs = {"1x24x6x5", "1x16x6x5"}});
  ASSERT_THAT(desc, IsOk());
  EXPECT_THAT(desc->concat().dst().dims(), ElementsAre(1, 40, 6, 5));
}

TEST(ParsePrimitive, IndicesTakeThePlaceOfAnAxis) {
  PrimitiveText text{.kind = "gather", .srcs = {"4x10x5"}, .indices = "3x2"};
  text.axis = 1;
  auto desc = ParsePrimitive(text);
  ASSERT_THAT(desc, IsOk());
  EXPECT_THAT(desc->gather().dst().dims(), ElementsAre(4, 3, 2, 5));
  EXPECT_EQ(desc->gather().indices().type(), v1::DATA_TYPE_S32);
  text.indices = "s64:7";
  desc = ParsePrimitive(text);
  ASSERT_THAT(desc, IsOk());
  EXPECT_THAT(desc->gather().dst().dims(), ElementsAre(4, 7, 5));
  EXPECT_EQ(desc->gather().indices().type(), v1::DATA_TYPE_S64);
}

TEST(ParsePrimitive, WeightsOfARecurrentNetworkFollow) {
  PrimitiveText text{.kind = "rnn", .srcs = {"20x3x16"}, .bias = true};
  text.hidden = 8;
  text.algorithm = "lbr_gru";
  text.direction = "bidirectional_concat";
  const auto desc = ParsePrimitive(text);
  ASSERT_THAT(desc, IsOk());
  EXPECT_THAT(desc->rnn().weights_layer().dims(), ElementsAre(1, 2, 16, 3, 8));
  EXPECT_THAT(desc->rnn().weights_iter().dims(), ElementsAre(1, 2, 8, 3, 8));
  EXPECT_THAT(desc->rnn().bias().dims(), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(desc->rnn().dst_layer().dims(), ElementsAre(20, 3, 16));
}

TEST(ParsePrimitive, BackwardReadsWhatItsKindReads) {
  PrimitiveText text{.kind = "eltwise", .srcs = {"2x8"}};
  text.prop = "backward_data";
  const auto eltwise = ParsePrimitive(text);
  ASSERT_THAT(eltwise, IsOk());
  EXPECT_EQ(eltwise->eltwise().prop_kind(), v1::PROP_KIND_BACKWARD_DATA);
  EXPECT_THAT(eltwise->eltwise().diff_src().dims(), ElementsAre(2, 8));
  EXPECT_TRUE(eltwise->eltwise().has_src() && !eltwise->eltwise().has_dst());
  text.kind = "softmax";
  const auto softmax = ParsePrimitive(text);
  ASSERT_THAT(softmax, IsOk());
  EXPECT_THAT(softmax->softmax().dst().dims(), ElementsAre(2, 8));
  EXPECT_FALSE(softmax->softmax().has_src());
  text.kind = "reduction";
  text.dst = "2x1";
  const auto reduction = ParsePrimitive(text);
  ASSERT_THAT(reduction, IsOk());
  EXPECT_THAT(reduction->reduction().diff_dst().dims(), ElementsAre(2, 1));
  text.prop = "sideways";
  EXPECT_THAT(ParsePrimitive(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                             ::testing::HasSubstr("one of forward_training")));
}

TEST(ParsePrimitive, GradientsAreAddedAndMasked) {
  PrimitiveText text{.kind = "inner_product", .srcs = {"2x8"}, .weights = "4x8"};
  text.prop = "backward_data";
  text.post_ops = {"sum", "mask"};
  const auto desc = ParsePrimitive(text);
  ASSERT_THAT(desc, IsOk());
  ASSERT_EQ(desc->attributes().post_ops_size(), 2);
  EXPECT_TRUE(desc->attributes().post_ops(0).has_sum());
  EXPECT_TRUE(desc->attributes().post_ops(1).has_mask());
}

TEST(ParsePrimitive, SaysWhatIsWrong) {
  struct Case {
    PrimitiveText text;
    const char* message;
  };
  const Case kCases[] = {
      {{.kind = "fft", .srcs = {"1x2"}}, "one of convolution"},
      {{.kind = "eltwise"}, "--src"},
      {{.kind = "eltwise", .srcs = {"1xtwo"}}, "1x64x56x56"},
      {{.kind = "eltwise", .srcs = {"f7:1x2"}}, "one of f16, bf16, f32"},
      {{.kind = "eltwise", .srcs = {"99999999x99999999"}}, "2^30"},
      {{.kind = "eltwise", .srcs = {"1x2"}, .algorithm = "sine"}, "relu, tanh"},
      {{.kind = "pooling", .srcs = {"1x2x3x3"}}, "--kernel"},
      {{.kind = "pooling", .srcs = {"1x2x3x3"}, .strides = "0", .kernel = "1x2x3"}, "--kernel"},
      {{.kind = "convolution", .srcs = {"1x2x3x3"}, .weights = "4x2"}, "--weights"},
      {{.kind = "convolution", .srcs = {"1x2x3x3"}, .weights = "4x2x1x1", .groups = 3}, "--groups"},
      {{.kind = "convolution", .srcs = {"1x2x3x3"}}, "--weights is missing, for example"},
      {{.kind = "matmul", .srcs = {"2x3"}}, "--weights is missing"},
      {{.kind = "convolution", .srcs = {"1x2x3x3"}, .weights = "4x2x3x3", .strides = "0"},
       "--strides '0' is not numbers from 1"},
      {{.kind = "convolution", .srcs = {"1x2x3x3"}, .weights = "4x2x5x5"},
       "a window of 5 pixels does not fit into 3 (dimension 2 of --src"},
      {{.kind = "pooling", .srcs = {"1x2x3x3"}, .kernel = "1x4"},
       "a window of 4 pixels does not fit into 3 (dimension 3 of --src"},
      {{.kind = "deconvolution", .srcs = {"1x2x1x1"}, .weights = "4x2x2x2", .padding = "1"},
       "--padding leaves nothing of the 2 pixels"},
      {{.kind = "concat", .srcs = {"1x2"}, .axis = 2}, "--axis"},
      {{.kind = "reorder", .srcs = {"1x2"}}, "--dst"},
      {{.kind = "rnn", .srcs = {"20x1x16"}}, "--hidden"},
      {{.kind = "rnn", .srcs = {"20x16"}, .hidden = 8}, "--src"},
      {{.kind = "rnn", .srcs = {"20x1x16"}, .hidden = 8, .direction = "up"}, "left2right"},
      {{.kind = "rnn", .srcs = {"20x1x16"}, .hidden = 8, .algorithm = "mut"}, "lstm"},
      {{.kind = "matmul", .srcs = {"2x3"}, .weights = "3x4", .precision = "half"},
       "one of exact, fast, bf16"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(ParsePrimitive(c.text), StatusIs(absl::StatusCode::kInvalidArgument, c.message))
        << c.text.kind;
  }
}

void AddArgument(v1::Argument argument, const v1::MemoryDesc& desc, v1::CreateResponse* created) {
  v1::ArgumentDesc* added = created->add_arguments();
  added->set_argument(argument);
  *added->mutable_desc() = desc;
}

TEST(MakeExecuteRequest, SumPostOpBringsTheDestinationToo) {
  const auto desc = ParsePrimitive({.kind = "eltwise", .srcs = {"1x2"}, .post_ops = {"sum"}});
  ASSERT_THAT(desc, IsOk());
  v1::CreateResponse created;
  created.set_id("id");
  for (const v1::Argument argument : {v1::ARGUMENT_SRC, v1::ARGUMENT_DST})
    AddArgument(argument, *ParseMemoryDesc("1x2:nc"), &created);
  const auto request = MakeExecuteRequest(*desc, created);
  ASSERT_THAT(request, IsOk());
  ASSERT_EQ(request->inputs_size(), 2);
  EXPECT_EQ(request->inputs(1).argument(), v1::ARGUMENT_DST);
  EXPECT_EQ(request->inputs(1).content().size(), 8);
  ASSERT_EQ(request->outputs_size(), 1);
}

// Made-up indices are inside, whatever their type.
TEST(MakeExecuteRequest, IndicesNameElements) {
  for (const char* indices : {"s32:200", "s64:200", "f32:200"}) {
    SCOPED_TRACE(indices);
    PrimitiveText text{.kind = "gather", .srcs = {"3x5"}, .indices = indices};
    text.axis = 0;
    const auto desc = ParsePrimitive(text);
    ASSERT_THAT(desc, IsOk());
    v1::CreateResponse created;
    AddArgument(v1::ARGUMENT_INDICES, desc->gather().indices(), &created);
    const auto request = MakeExecuteRequest(*desc, created);
    ASSERT_THAT(request, IsOk());
    const std::string& bytes = request->inputs(0).content();
    const v1::DataType type = desc->gather().indices().type();
    const size_t size = type == v1::DATA_TYPE_S64 ? 8 : 4;
    ASSERT_EQ(bytes.size(), 200 * size);
    std::set<double> found;
    for (size_t i = 0; i < bytes.size(); i += size) {
      float real;
      int32_t narrow;
      int64_t wide = 0;
      std::memcpy(&real, &bytes[i], 4);
      std::memcpy(&narrow, &bytes[i], 4);
      std::memcpy(&wide, &bytes[i], size);
      const bool is_real = type == v1::DATA_TYPE_F32;
      found.insert(is_real ? real : static_cast<double>(size == 8 ? wide : narrow));
    }
    EXPECT_THAT(found, ElementsAre(0, 1, 2));
  }
}

// A gradient may have other sizes than the src whose layout was named.
TEST(MakeExecuteRequest, GradientsAreSentInTheLayoutOfSrc) {
  PrimitiveText text{.kind = "pooling", .srcs = {"1x3x8x8:nhwc"}};
  text.kernel = "2";
  text.strides = "2";
  text.prop = "backward_data";
  const auto desc = ParsePrimitive(text);
  ASSERT_THAT(desc, IsOk());
  v1::CreateResponse created;
  AddArgument(v1::ARGUMENT_DIFF_DST, desc->pooling().dst(), &created);
  const auto request = MakeExecuteRequest(*desc, created);
  ASSERT_THAT(request, IsOk());
  EXPECT_EQ(ToText(request->inputs(0).desc()), "f32:1x3x4x4:nhwc");
}

TEST(ToText, NamesTypeShapeAndLayout) {
  EXPECT_EQ(ToText(*ParseMemoryDesc("u8:1x2x3x4:nhwc")), "u8:1x2x3x4:nhwc");
  EXPECT_EQ(ToText(*ParseMemoryDesc("1x2")), "f32:1x2:plain");
}

}  // namespace
}  // namespace tilewire::client
