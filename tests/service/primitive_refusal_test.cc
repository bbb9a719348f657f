// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <functional>

#include "tests/service/primitive_fixture.h"

namespace tilewire::service {
namespace {

using grpc::StatusCode;

class PrimitiveRefusalTest : public PrimitiveFixture {};

struct RefusedCase {
  const char* why;
  std::string primitive;
  StatusCode code;
};

std::string Unary(absl::string_view kind, const std::string& md) {
  return absl::StrCat(kind, " src ", md, " dst ", md, " }");
}

std::string Relu(const std::string& md) {
  return Unary("eltwise { op { algorithm: ELTWISE_RELU }", md);
}

std::string Lrn(absl::string_view algorithm, const std::string& md) {
  return Unary(absl::StrCat("lrn { local_size: 5 alpha: 1 beta: 0.75 k: 1 algorithm: ", algorithm),
               md);
}

// 3x3 on an image of 5x5 with dst of 3x3, and what else is said.
std::string Convolution(absl::string_view src, absl::string_view weights, absl::string_view dst,
                        absl::string_view more) {
  return absl::StrCat("convolution { src ", Md(src, "any"), " weights ", Md(weights, "any"),
                      " dst ", Md(dst, "any"), " ", more, " }");
}

std::string Pooling(absl::string_view more) {
  return absl::StrCat("pooling { src ", Md("1,1,4,4", "nchw"), " dst ", Md("1,1,2,2", "nchw"), " ",
                      more, " }");
}

// One cell of one state on two steps, and what else is said.
std::string Rnn(absl::string_view layers, absl::string_view more) {
  return absl::StrCat("rnn { src_layer ", Md("2,1,1", "ncw"), " weights_layer ",
                      Md(absl::StrCat(layers, ",1,1,1,1"), "any"), " weights_iter ",
                      Md(absl::StrCat(layers, ",1,1,1,1"), "any"), " dst_layer ",
                      Md("2,1,1", "ncw"), " ", more, " }");
}

std::vector<RefusedCase> Refused() {
  const StatusCode bad = StatusCode::INVALID_ARGUMENT, large = StatusCode::RESOURCE_EXHAUSTED;
  const std::string image = "1,1,5,5", kernel = "1,1,3,3", post_op = "post_ops { sum {} } ";
  return {
      {"nothing", "", bad},
      {"sizes overflow", Relu(Md("4294967296,4294967296,1,1", "nchw")), bad},
      {"padding to the block overflows", Relu(Md("1,9223372036854775807,1,1", "nChw16c")), bad},
      {"a negative dimension", Relu(Md("1,-1,2,2", "nchw")), bad},
      {"no dimension", Relu("{ type: DATA_TYPE_F32 }"), bad},
      {"no type", Relu("{ dims: [1, 2] }"), bad},
      {"a blocked tag on a matrix", Relu(Md("1,16", "nChw16c")), bad},
      {"an unknown tag", Relu(Md("1,2,3,4", "nqhw")), bad},
      {"a pattern that is none", Relu("{ dims: [1] type: DATA_TYPE_F32 pattern: 'a0a' }"), bad},
      {"strides of another rank",
       Relu("{ dims: [1, 2] type: DATA_TYPE_F32 strides { values: [1] } }"), bad},
      {"elements that overlap",
       Relu("{ dims: [2, 2] type: DATA_TYPE_F32 strides { values: [0, 1] } }"), bad},
      {"groups that do not divide", Convolution("1,4,5,5", "3,1,1,3,3", "1,3,3,3", ""), bad},
      {"a group size that does not divide",
       Unary("shuffle { axis: 1 group_size: 3", Md("1,4,1,1", "nchw")), bad},
      {"a group size of zero", Unary("shuffle { axis: 1", Md("1,4,1,1", "nchw")), bad},
      {"an axis outside", Unary("softmax { axis: 4", Md("1,4,1,1", "nchw")), bad},
      {"a negative axis", Unary("softmax { axis: -1", Md("1,4,1,1", "nchw")), bad},
      {"a dilation that leaves nothing", Convolution(image, kernel, "1,1,1,1", "dilations: [2, 2]"),
       bad},
      {"a dilation that overflows",
       Convolution(image, kernel, "1,1,1,1", "dilations: [9223372036854775807, 1]"), bad},
      {"a negative padding", Convolution(image, kernel, "1,1,2,2", "padding_left: [-1, -1]"), bad},
      {"a padding that overflows",
       Convolution(image, kernel, kernel, "padding_left: [9223372036854775807, 0]"), bad},
      {"two layers of a network", Rnn("2", ""), StatusCode::UNIMPLEMENTED},
      {"a cell that nothing has", Rnn("1", "cell: 4"), bad},
      {"a direction that nothing has", Rnn("1", "direction: -1"), bad},
      {"gates of another cell", Rnn("1", "cell: RNN_CELL_LSTM"), bad},
      {"too many functions",
       Rnn("1", "activations { algorithm: ELTWISE_TANH } activations { algorithm: ELTWISE_TANH }"),
       bad},
      {"a function that nothing has", Rnn("1", "activations { }"), bad},
      {"an eltwise that nothing has", Unary("eltwise { op { algorithm: 99 }", Md("1,2", "nc")),
       bad},
      {"an alpha that is not a number",
       Unary("eltwise { op { algorithm: ELTWISE_ELU alpha: nan }", Md("1,2", "nc")), bad},
      {"a beta that is not a number",
       Unary("eltwise { op { algorithm: ELTWISE_LINEAR alpha: 1 beta: nan }", Md("1,2", "nc")),
       bad},
      {"a scale that is not a number",
       absl::StrCat("sum { scales: nan srcs ", Md("1,2", "nc"), " dst ", Md("1,2", "nc"), "}"),
       bad},
      {"a clip that is not a number", Rnn("1", "clip: nan"), bad},
      {"a clip that is a denormal", Rnn("1", "clip: 1e-40"), bad},
      {"memory of a cell without", Rnn("1", absl::StrCat("src_iter_c ", Md("1,1,1,1", "nchw"))),
       bad},
      {"lengths of another type", Rnn("1", absl::StrCat("sequence_lengths ", Md("1", "x"))),
       StatusCode::UNIMPLEMENTED},
      {"lengths of other sequences",
       Rnn("1", "sequence_lengths { dims: 2 type: DATA_TYPE_S32 tag: 'x' }"), bad},
      {"a stride of zero", Convolution(image, kernel, kernel, "strides: [0, 1]"), bad},
      {"strides of another number", Convolution(image, kernel, kernel, "strides: [1]"), bad},
      {"a pooling window larger than memory", Pooling("kernel: [4611686018427387904, 2]"), large},
      {"a pooling stride that overflows",
       Pooling("kernel: [2, 2] strides: [9223372036854775807, 2]"), bad},
      {"a pooling padding that overflows",
       Pooling("kernel: [2, 2] strides: [2, 2] padding_right: [9223372036854775807, 0]"), bad},
      {"five post-ops",
       Convolution(image, kernel, kernel, "") + "attributes { " + post_op + post_op + post_op +
           post_op + post_op + "}",
       bad},
      {"a post-op after a max pooling",
       Convolution(image, kernel, kernel, "") + "attributes { post_ops { max_pooling {} } " +
           post_op + "}",
       bad},
      {"a max pooling without a window",
       Convolution("1,1,3,3", kernel, "1,1,1,1", "") + "attributes { post_ops { max_pooling {} } }",
       bad},
      {"a post-op that is none",
       Convolution(image, kernel, kernel, "") + "attributes { post_ops {} }", bad},
      {"a precision that nothing has",
       Convolution(image, kernel, kernel, "padding_left: 1 padding_left: 1") +
           "attributes { precision: 3 }",
       bad},
      {"sixteen gigabytes", Relu(Md("1,1,65536,65536", "nchw")), large},
      {"sixteen gigabytes of any layout",
       absl::StrCat("inner_product { src ", Md("1,65536", "any"), " weights ",
                    Md("65536,65536", "any"), " dst ", Md("1,65536", "any"), "}"),
       large},
      {"a few bytes seen as a trillion elements by strides of 0",
       Relu("{ dims: [1, 1099511627776, 1, 1] type: DATA_TYPE_F32 "
            "strides { values: [0, 0, 0, 0] } }"),
       large},
      {"strides of 0 whose elements overflow",
       Relu("{ dims: [1099511627776, 1099511627776] type: DATA_TYPE_F32 "
            "strides { values: [0, 0] } }"),
       bad},
      {"as many bytes as there are addresses",
       Relu("{ dims: [2, 2] type: DATA_TYPE_F32 strides { values: [1152921504606846976, 1] } }"),
       large},
  };
}

TEST_F(PrimitiveRefusalTest, CreateSaysWhatIsWrong) {
  Start();
  for (const RefusedCase& test : Refused()) {
    SCOPED_TRACE(test.why);
    v1::CreateResponse response;
    const grpc::Status status = Create(test.primitive, &response);
    EXPECT_EQ(status.error_code(), test.code) << status.error_message();
    EXPECT_FALSE(status.error_message().empty());
    EXPECT_LT(status.error_message().size(), 1024);
  }
  EXPECT_EQ(Statistics().entries(), 0) << "what failed leaves nothing behind";
}

// The primitives that models alone use have no message: a client that asks for one sends none.
TEST_F(PrimitiveRefusalTest, WhatIsNotOfferedIsAnsweredWithWhatIs) {
  Start();
  v1::CreateResponse response;
  const grpc::Status status = Create("", &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("one of reorder, shuffle, concat"));
  EXPECT_THAT(status.error_message(), ::testing::Not(::testing::HasSubstr("select")));
}

// Each of these once divided by zero in the engine, and the whole server went down.
TEST_F(PrimitiveRefusalTest, EmptyDimensionsDoNotKillTheServer) {
  Start();
  const std::string batch = Convolution("0,64,28,28", "64,64,3,3", "0,64,28,28",
                                        "padding_left: [1, 1] "
                                        "padding_right: [1, 1]");
  const std::string channels = Lrn("LRN_WITHIN_CHANNEL", Md("16,0,1", "ncw"));
  const std::string bias =
      absl::StrCat("inner_product { src ", Md("2,8", "any"), " weights ", Md("4,8", "any"),
                   " bias ", Md("0", "any"), " dst ", Md("2,4", "any"), "}");
  const std::string concat = absl::StrCat("concat { axis: 1 srcs ", Md("1,2,3", "ncw"), " srcs ",
                                          Md("1,2,0", "ncw"), " dst ", Md("1,4,3", "ncw"), "}");
  const struct {
    std::string primitive, says;
  } cases[] = {
      {batch, "src: dimension 0 is 0, allowed are sizes from 1"},
      {channels, "src: dimension 1 is 0, allowed are sizes from 1"},
      {Lrn("LRN_ACROSS_CHANNELS", Md("16,0,1", "nwc")), "src: dimension 1 is 0"},
      {bias, "bias: dimension 0 is 0"},
      {concat, "srcs[1]: dimension 2 is 0"},
  };
  for (const auto& test : cases) {
    v1::CreateResponse response;
    const grpc::Status status = Create(test.primitive, &response);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(test.says));
  }
}

v1::ExecuteRequest GoodExecution() {
  const std::string line = Md("1,1,1,4", "nchw");
  v1::ExecuteRequest request;
  *request.mutable_primitive() = FromText<v1::PrimitiveDesc>(Relu(line));
  *request.add_inputs() = ToMessage({1, line, {-1, 0, 1, 2}});
  return request;
}

struct ExecutionCase {
  const char* why;
  std::function<void(v1::ExecuteRequest*)> spoil;
  StatusCode code;
};

TEST_F(PrimitiveRefusalTest, ExecuteSaysWhatIsWrong) {
  Start();
  const StatusCode bad = StatusCode::INVALID_ARGUMENT;
  const auto want = [](v1::ExecuteRequest* request, int argument, const std::string& desc) {
    request->add_outputs()->set_argument(argument);
    *request->mutable_outputs(0)->mutable_desc() = ToMessage({17, desc, {}}).desc();
  };
  const ExecutionCase cases[] = {
      {"neither id nor primitive", [](auto* r) { r->clear_primitive(); }, bad},
      {"an unknown id", [](auto* r) { r->set_id("0123"); }, StatusCode::NOT_FOUND},
      {"no input", [](auto* r) { r->clear_inputs(); }, bad},
      {"an input twice", [](auto* r) { *r->add_inputs() = r->inputs(0); }, bad},
      {"an argument it has not", [](auto* r) { r->mutable_inputs(0)->set_argument(33); }, bad},
      {"a byte short", [](auto* r) { r->mutable_inputs(0)->mutable_content()->pop_back(); }, bad},
      {"a tensor of layout any",
       [](auto* r) { r->mutable_inputs(0)->mutable_desc()->set_tag("any"); }, bad},
      {"other dims",
       [](auto* r) {
         *r->mutable_inputs(0) = ToMessage({1, Md("1,4,1,1", "nchw"), {1, 2, 3, 4}});
       },
       bad},
      {"an output it has not", [](auto* r) { r->add_outputs()->set_argument(1); }, bad},
      {"other output dims", [&](auto* r) { want(r, 17, Md("1,4,1,1", "nchw")); }, bad},
      {"an output that overlaps",
       [&](auto* r) {
         want(r, 17, "{ dims: [1, 1, 1, 4] type: DATA_TYPE_F32 strides { values: [1, 1, 1, 0] } }");
       },
       bad},
      {"an output larger than memory",
       [&](auto* r) {
         want(r, 17,
              "{ dims: [1, 1, 1, 4] type: DATA_TYPE_F32 "
              "strides { values: [1, 1, 1, 288230376151711744] } }");
       },
       StatusCode::RESOURCE_EXHAUSTED},
      {"an output larger than a message",
       [&](auto* r) {
         want(r, 17,
              "{ dims: [1, 1, 1, 4] type: DATA_TYPE_F32 "
              "strides { values: [1, 1, 1, 20000000] } }");
       },
       StatusCode::RESOURCE_EXHAUSTED},
      {"thousands of inputs",
       [](auto* r) {
         for (int i = 0; i < 5000; ++i) *r->add_inputs() = r->inputs(0);
       },
       bad},
  };
  for (const ExecutionCase& test : cases) {
    SCOPED_TRACE(test.why);
    v1::ExecuteRequest request = GoodExecution();
    test.spoil(&request);
    v1::ExecuteResponse response;
    const grpc::Status status = Execute(request, &response);
    EXPECT_EQ(status.error_code(), test.code) << status.error_message();
    EXPECT_LT(status.error_message().size(), 1024);
    v1::ExecuteResponse good;
    ASSERT_TRUE(Execute(GoodExecution(), &good).ok());
    EXPECT_EQ(ValuesOf(good.outputs(0)), (std::vector<float>{0, 0, 1, 2}));
  }
}

}  // namespace
}  // namespace tilewire::service
