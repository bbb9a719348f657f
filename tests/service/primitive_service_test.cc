// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <bit>

#include "tests/service/primitive_fixture.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

class PrimitiveServiceTest : public PrimitiveFixture {};

struct KindCase {
  std::string implementation;  // how its name begins
  std::string primitive;       // text of a PrimitiveDesc
  std::vector<GivenTensor> inputs;
  std::string output;  // text of a MemoryDesc
  std::vector<float> expected;
};

std::vector<KindCase> OneOfEachKind() {
  const std::string line4 = Md("1,1,1,4", "nchw"), four = Md("1,4,1,1", "nchw");
  const std::string square = Md("1,1,3,3", "any"), pair = Md("1,2", "nc");
  const std::string prefix = " prop_kind: PROP_KIND_FORWARD_INFERENCE ";
  return {
      {"reorder/",
       absl::StrCat("reorder { src ", Md("1,2,1,2", "nchw"), " dst ", Md("1,2,1,2", "nhwc"), "}"),
       {{1, Md("1,2,1,2", "nchw"), {0, 1, 2, 3}}},
       Md("1,2,1,2", "nhwc"),
       {0, 2, 1, 3}},
      {"shuffle/",
       absl::StrCat("shuffle {", prefix, "src ", four, " dst ", four, " axis: 1 group_size: 2 }"),
       {{1, four, {0, 1, 2, 3}}},
       four,
       {0, 2, 1, 3}},
      {"concat/",
       absl::StrCat("concat { axis: 1 srcs ", Md("1,1,1,2", "nchw"), " srcs ",
                    Md("1,2,1,2", "nchw"), " dst ", Md("1,3,1,2", "nchw"), "}"),
       {{1024, Md("1,1,1,2", "nchw"), {1, 2}}, {1025, Md("1,2,1,2", "nchw"), {3, 4, 5, 6}}},
       Md("1,3,1,2", "nchw"),
       {1, 2, 3, 4, 5, 6}},
      {"sum/",
       absl::StrCat("sum { scales: [2, -1] srcs ", line4, " srcs ", line4, " dst ", line4, "}"),
       {{1024, line4, {1, 2, 3, 4}}, {1025, line4, {1, 1, 5, 0}}},
       line4,
       {1, 3, 1, 8}},
      {"convolution/",
       absl::StrCat("convolution {", prefix, "src ", square, " weights ", Md("1,1,2,2", "any"),
                    " bias ", Md("1", "x"), " dst ", Md("1,1,2,2", "any"), "}"),
       {{1, Md("1,1,3,3", "nchw"), {1, 2, 3, 4, 5, 6, 7, 8, 9}},
        {33, Md("1,1,2,2", "oihw"), {1, 1, 1, 1}},
        {41, Md("1", "x"), {10}}},
       Md("1,1,2,2", "nchw"),
       {22, 26, 34, 38}},
      {"eltwise/",
       absl::StrCat("eltwise {", prefix, "op { algorithm: ELTWISE_RELU alpha: 0.5 } src ", line4,
                    " dst ", line4, "}"),
       {{1, line4, {-2, 0, 2, 3}}},
       line4,
       {-1, 0, 2, 3}},
      {"softmax/",
       absl::StrCat("softmax {", prefix, "src ", pair, " dst ", pair, " axis: 1 }"),
       {{1, pair, {7, 7}}},
       pair,
       {0.5, 0.5}},
      {"pooling/",
       absl::StrCat("pooling {", prefix, "src ", Md("1,1,2,4", "nchw"), " dst ",
                    Md("1,1,1,2", "nchw"), " kernel: [2, 2] strides: [2, 2] }"),
       {{1, Md("1,1,2,4", "nchw"), {1, 5, 2, 0, 3, 4, 7, 6}}},
       Md("1,1,1,2", "nchw"),
       {5, 7}},
      {"inner_product/",
       absl::StrCat("inner_product {", prefix, "src ", Md("1,3", "any"), " weights ",
                    Md("2,3", "any"), " bias ", Md("2", "x"), " dst ", Md("1,2", "any"), "}"),
       {{1, Md("1,3", "nc"), {1, 2, 3}},
        {33, Md("2,3", "oi"), {1, 0, 0, 1, 1, 1}},
        {41, Md("2", "x"), {10, 20}}},
       Md("1,2", "nc"),
       {11, 26}},
  };
}

// The kinds beyond MKL-DNN 1.0's first nine.
std::vector<KindCase> OneOfEachLaterKind() {
  const std::string four = Md("1,4,1,1", "nchw"), row = Md("1,1,1,2", "nchw");
  const std::string prefix = " prop_kind: PROP_KIND_FORWARD_INFERENCE ";
  return {
      {"lrn/",
       absl::StrCat("lrn {", prefix, "src ", four, " dst ", four,
                    " local_size: 3 alpha: 3 beta: 1 k: 1 }"),
       {{1, four, {1, 1, 1, 3}}},
       four,
       {1.0f / 3, 1.0f / 4, 1.0f / 12, 3.0f / 11}},
      {"binary/",
       absl::StrCat("binary { algorithm: BINARY_MUL src0 ", four, " src1 ", Md("1,1,1,1", "nchw"),
                    " dst ", four, "}"),
       {{1, four, {1, 2, 3, 4}}, {2, Md("1,1,1,1", "nchw"), {3}}},
       four,
       {3, 6, 9, 12}},
      {"batch_normalization/",
       absl::StrCat("batch_normalization {", prefix, "src ", Md("1,2,1,1", "nchw"), " dst ",
                    Md("1,2,1,1", "nchw"), " use_global_stats: true use_scale_shift: true }"),
       {{1, Md("1,2,1,1", "nchw"), {3, 5}},
        {49, Md("2", "x"), {1, 1}},
        {50, Md("2", "x"), {4, 1}},
        {33, Md("2,2", "nc"), {2, 1, 0, 10}}},
       Md("1,2,1,1", "nchw"),
       {2, 14}},
      {"resampling/",
       absl::StrCat("resampling {", prefix, "algorithm: RESAMPLING_LINEAR src ", row, " dst ",
                    Md("1,1,1,4", "nchw"), "}"),
       {{1, row, {0, 4}}},
       Md("1,1,1,4", "nchw"),
       {0, 1, 3, 4}},
      {"reduction/",
       absl::StrCat("reduction { algorithm: REDUCTION_MEAN src ", four, " dst ",
                    Md("1,1,1,1", "nchw"), "}"),
       {{1, four, {1, 2, 3, 6}}},
       Md("1,1,1,1", "nchw"),
       {3}},
      {"layer_normalization/",
       absl::StrCat("layer_normalization {", prefix, "src ", Md("1,2", "nc"), " dst ",
                    Md("1,2", "nc"), "}"),
       {{1, Md("1,2", "nc"), {3, 5}}},
       Md("1,2", "nc"),
       {-1, 1}},
      {"matmul/",
       absl::StrCat("matmul { src ", Md("1,2", "any"), " weights ", Md("2,2", "any"), " dst ",
                    Md("1,2", "any"), "}"),
       {{1, Md("1,2", "nc"), {1, 2}}, {33, Md("2,2", "nc"), {1, 2, 3, 4}}},
       Md("1,2", "nc"),
       {7, 10}},
      {"deconvolution/",
       absl::StrCat("deconvolution {", prefix, "src ", Md("1,1,1,2", "any"), " weights ",
                    Md("1,1,1,2", "any"), " dst ", Md("1,1,1,4", "any"), " strides: [1, 2] }"),
       {{1, row, {1, 2}}, {33, Md("1,1,1,2", "oihw"), {1, 10}}},
       Md("1,1,1,4", "nchw"),
       {1, 10, 2, 20}},
      // h = relu(2 x + 3 h), from h = 1; the second sequence ends after a step.
      {"rnn/",
       absl::StrCat("rnn {", prefix, "activations { algorithm: ELTWISE_RELU } src_layer ",
                    Md("2,2,1", "ncw"), " src_iter ", Md("1,1,2,1", "nchw"), " weights_layer ",
                    Md("1,1,1,1,1", "any"), " weights_iter ", Md("1,1,1,1,1", "any"),
                    " sequence_lengths { dims: 2 type: DATA_TYPE_S32 tag: 'x' } dst_layer ",
                    Md("2,2,1", "any"), "}"),
       {{1, Md("2,2,1", "ncw"), {1, 10, 2, 20}},
        {2, Md("1,1,2,1", "nchw"), {1, 1}},
        {4,
         "{ dims: 2 type: DATA_TYPE_S32 tag: 'x' }",
         {std::bit_cast<float>(2), std::bit_cast<float>(1)}},
        {33, Md("1,1,1,1,1", "ncdhw"), {2}},
        {34, Md("1,1,1,1,1", "ncdhw"), {3}}},
       Md("2,2,1", "ncw"),
       {5, 23, 19, 0}},
  };
}

v1::ExecuteRequest ToRequest(const KindCase& test) {
  v1::ExecuteRequest request;
  *request.mutable_primitive() = FromText<v1::PrimitiveDesc>(test.primitive);
  for (const GivenTensor& input : test.inputs) *request.add_inputs() = ToMessage(input);
  request.add_outputs()->set_argument(17);
  *request.mutable_outputs(0)->mutable_desc() = ToMessage({17, test.output, {}}).desc();
  return request;
}

TEST_F(PrimitiveServiceTest, EachKindComputes) {
  Start();
  std::vector<KindCase> cases = OneOfEachKind();
  for (KindCase& later : OneOfEachLaterKind()) cases.push_back(std::move(later));
  for (const KindCase& test : cases) {
    SCOPED_TRACE(test.implementation);
    v1::CreateResponse created;
    const grpc::Status status = Create(test.primitive, &created);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(created.implementation(), StartsWith(test.implementation));
    EXPECT_EQ(created.id().size(), 32);
    EXPECT_EQ(created.arguments_size(), test.inputs.size() + 1);

    v1::ExecuteRequest request = ToRequest(test);
    v1::ExecuteResponse by_description, by_id;
    const grpc::Status executed = Execute(request, &by_description);
    ASSERT_TRUE(executed.ok()) << executed.error_message();
    EXPECT_THAT(ValuesOf(by_description.outputs(0)), ElementsAreArray(test.expected));
    request.set_id(created.id());
    ASSERT_TRUE(Execute(request, &by_id).ok());
    EXPECT_THAT(ValuesOf(by_id.outputs(0)), ElementsAreArray(test.expected));
    EXPECT_EQ(by_id.implementation(), created.implementation());
  }
}

TEST_F(PrimitiveServiceTest, ArgumentsHaveTheNamesOfTheirDescriptor) {
  Start();
  for (const KindCase& test : OneOfEachLaterKind()) {
    if (test.implementation != "rnn/") continue;
    v1::CreateResponse created;
    ASSERT_TRUE(Create(test.primitive, &created).ok());
    std::vector<std::string> names;
    for (const v1::ArgumentDesc& argument : created.arguments()) names.push_back(argument.name());
    EXPECT_THAT(names,
                ::testing::UnorderedElementsAre("src_layer", "src_iter", "sequence_lengths",
                                                "weights_layer", "weights_iter", "dst_layer"));
    return;
  }
  FAIL() << "no case of rnn";
}

TEST_F(PrimitiveServiceTest, TensorsComeAndGoInTheCallersLayouts) {
  Start();
  const std::string blocked = Md("1,3,1,2", "nChw8c");
  KindCase test;
  test.primitive = absl::StrCat("eltwise { op { algorithm: ELTWISE_LINEAR alpha: 2 beta: 1 } src ",
                                blocked, " dst ", blocked, "}");
  const std::string nchw = Md("1,3,1,2", "nchw"), nhwc = Md("1,3,1,2", "nhwc");
  const std::vector<float> in_nchw = {0, 1, 2, 3, 4, 5}, in_nhwc = {0, 2, 4, 1, 3, 5};
  const std::vector<float> in_blocked = {0, 2, 4, 9, 9, 9, 9, 9, 1, 3, 5, 9, 9, 9, 9, 9};
  const std::vector<float> out_nchw = {1, 3, 5, 7, 9, 11}, out_nhwc = {1, 5, 9, 3, 7, 11};
  const std::vector<float> out_blocked = {1, 5, 9, 0, 0, 0, 0, 0, 3, 7, 11, 0, 0, 0, 0, 0};
  for (const GivenTensor& in : {GivenTensor{1, nchw, in_nchw}, GivenTensor{1, nhwc, in_nhwc},
                                GivenTensor{1, blocked, in_blocked}}) {
    for (const GivenTensor& out : {GivenTensor{17, nchw, out_nchw}, GivenTensor{17, nhwc, out_nhwc},
                                   GivenTensor{17, blocked, out_blocked}}) {
      SCOPED_TRACE(in.desc + " to " + out.desc);
      test.inputs = {in};
      test.output = out.desc;
      v1::ExecuteResponse response;
      const grpc::Status status = Execute(ToRequest(test), &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      EXPECT_THAT(ValuesOf(response.outputs(0)), ElementsAreArray(out.values));
    }
  }
}

TEST_F(PrimitiveServiceTest, AnIdOutlivesTheCompiledCode) {
  EngineOptions options;
  options.primitive_cache_bytes = 1;  // nothing stays
  Start(options);
  const KindCase test = OneOfEachKind()[4];
  v1::CreateResponse created;
  ASSERT_TRUE(Create(test.primitive, &created).ok());
  for (int channels = 1; channels <= 40; ++channels) {
    const std::string md = Md(absl::StrCat("1,", channels, ",2,2"), "nchw");
    v1::CreateResponse other;
    ASSERT_TRUE(Create(absl::StrCat("softmax { src ", md, " dst ", md, " axis: 1 }"), &other).ok());
    EXPECT_NE(other.id(), created.id());
  }
  EXPECT_GT(Statistics().evictions(), 0);
  v1::ExecuteRequest request = ToRequest(test);
  request.set_id(created.id());
  v1::ExecuteResponse response;
  const grpc::Status status = Execute(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(ValuesOf(response.outputs(0)), ElementsAreArray(test.expected));
}

// Half a minute of work that only the plain loops take: the deadline ends it in its middle.
TEST_F(PrimitiveServiceTest, ADeadlineEndsLongWorkAndTheServerServesOn) {
  options_.primitives.max_reference_operations = 1e12;
  Start();
  const std::string src = Md("1,100,60,60", "chwn"), weights = OneWeight("100,100,7,7");
  v1::ExecuteRequest request;
  *request.mutable_primitive() = FromText<v1::PrimitiveDesc>(absl::StrCat(
      "convolution { src ", src, " weights ", weights, " dst ", Md("1,100,54,54", "chwn"), "}"));
  *request.add_inputs() = ToMessage({1, src, std::vector<float>(100 * 60 * 60)});
  *request.add_inputs() = ToMessage({33, weights, {0}});
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(250));
  v1::ExecuteResponse response;
  EXPECT_EQ(stub_->Execute(&context, request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  server_->Drain();  // returns: nothing works on what no client waits for
}

TEST_F(PrimitiveServiceTest, WorkBeyondTheLimitsIsRefusedBeforeItBegins) {
  options_.primitives = {.max_operations = 1e6, .max_reference_operations = 1e3};
  Start();
  v1::CreateResponse response;
  const auto product = [](int size, const char* tag) {
    const std::string matrix = Md(absl::StrCat(size, ",", size), tag);
    return absl::StrCat("matmul { src ", matrix, " weights ", matrix, " dst ", matrix, "}");
  };
  EXPECT_TRUE(Create(product(9, "ab"), &response).ok());
  EXPECT_EQ(Create(product(200, "ab"), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  const grpc::Status status =
      Create(absl::StrCat("convolution { src ", Md("1,10,20,20", "chwn"), " weights ",
                          OneWeight("10,10,3,3"), " dst ", Md("1,10,18,18", "chwn"), "}"),
             &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << "only a reference takes it";
  EXPECT_THAT(status.error_message(), HasSubstr("--max_reference_operations"));
}

TEST_F(PrimitiveServiceTest, CacheStatisticsCount) {
  Start();
  const v1::CacheStatisticsResponse before = Statistics();
  EXPECT_EQ(before.entries(), 0);
  const std::string primitive = OneOfEachKind()[0].primitive;
  v1::CreateResponse first, second;
  ASSERT_TRUE(Create(primitive, &first).ok());
  ASSERT_TRUE(Create(primitive, &second).ok());
  EXPECT_FALSE(first.cache_hit());
  EXPECT_TRUE(second.cache_hit());
  EXPECT_EQ(first.id(), second.id());
  const v1::CacheStatisticsResponse after = Statistics();
  EXPECT_EQ(after.misses(), 1);
  EXPECT_EQ(after.hits(), 1);
  EXPECT_EQ(after.entries(), 1);
  EXPECT_GT(after.bytes(), 0);
  EXPECT_GT(after.capacity_bytes(), after.bytes());
}

TEST_F(PrimitiveServiceTest, TellsWhyBetterImplementationsRefused) {
  Start({.max_isa = cpu::Isa::kBaseline});
  v1::CreateResponse created;
  const std::string line = Md("1,8", "nc");
  ASSERT_TRUE(Create(absl::StrCat("eltwise { op { algorithm: ELTWISE_RELU } src ", line, " dst ",
                                  line, " }"),
                     &created)
                  .ok());
  EXPECT_EQ(created.implementation(), "eltwise/reference");
  ASSERT_GT(created.refusals_size(), 0);
  for (const v1::Refusal& refusal : created.refusals()) {
    EXPECT_THAT(refusal.implementation(), StartsWith("eltwise/"));
    EXPECT_THAT(refusal.reason(), StartsWith("needs "));
  }
}

TEST_F(PrimitiveServiceTest, TellsWhatTheOthersAreEstimatedToTake) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  Start({.max_isa = cpu::Isa::kAvx2});
  v1::CreateResponse created;
  ASSERT_TRUE(Create(absl::StrCat("convolution { src ", Md("1,64,56,56", "any"), " weights ",
                                  Md("64,64,3,3", "any"), " dst ", Md("1,64,54,54", "any"), "}"),
                     &created)
                  .ok());
  EXPECT_EQ(created.implementation(), "convolution/avx2_f32_winograd_4x3");
  EXPECT_GT(created.cycles(), 0);
  double direct = 0;
  for (const v1::Refusal& refusal : created.refusals()) {
    if (refusal.implementation() != "convolution/avx2_f32_direct") continue;
    EXPECT_THAT(refusal.reason(), StartsWith("estimated "));
    direct = refusal.cycles();
  }
  EXPECT_GT(direct, created.cycles());
}

TEST_F(PrimitiveServiceTest, ListsEveryImplementation) {
  Start();
  grpc::ClientContext context;
  v1::ListImplementationsResponse response;
  ASSERT_TRUE(stub_->ListImplementations(&context, {}, &response).ok());
  std::vector<std::string> names;
  for (const v1::Implementation& row : response.implementations()) {
    names.push_back(row.name());
    EXPECT_THAT(row.name(), StartsWith(row.primitive() + "/"));
    EXPECT_TRUE(row.usable() || row.isa() != "baseline") << row.name();
    EXPECT_GT(row.types_size(), 0) << row.name();
    const bool may_cost = row.primitive() == "convolution" || row.primitive() == "deconvolution";
    EXPECT_TRUE(!row.by_cost() || may_cost) << row.name();
  }
  std::vector<std::string> expected;
  for (const ImplementationRow& row : AllImplementations()) expected.emplace_back(row.name);
  EXPECT_THAT(names, ElementsAreArray(expected));
  EXPECT_THAT(names, IsSupersetOf({"convolution/reference", "shuffle/reference"}));
}

}  // namespace
}  // namespace tilewire::service
