// SPDX-License-Identifier: Apache-2.0
//
// Gather over the wire, both ways: every type of indices, and each refusal.
#include <gmock/gmock.h>

#include <limits>
#include <map>

#include "tests/service/primitive_fixture.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Typed(absl::string_view type, absl::string_view dims) {
  return absl::StrCat("{ dims: [", dims, "] type: DATA_TYPE_", type, " }");
}

// Rows of a [3,2] table.
std::string Rows(const std::string& indices, absl::string_view dst, absl::string_view more = "") {
  return absl::StrCat("gather { src ", Md("3,2", "nc"), " indices ", indices, " dst ",
                      Typed("F32", dst), " ", more, "}");
}

constexpr char kOfWeights[] = "prop_kind: PROP_KIND_BACKWARD_WEIGHTS ";

class GatherPrimitiveTest : public PrimitiveFixture {
 protected:
  grpc::Status Run(const std::string& primitive, const std::vector<v1::Tensor>& inputs,
                   std::vector<float>* output) {
    v1::ExecuteRequest request;
    *request.mutable_primitive() = FromText<v1::PrimitiveDesc>(primitive);
    for (const v1::Tensor& input : inputs) *request.add_inputs() = input;
    v1::ExecuteResponse response;
    const grpc::Status status = Execute(request, &response);
    if (status.ok()) *output = ValuesOf(response.outputs(0));
    return status;
  }

  template <typename T>
  void ExpectBothWays(absl::string_view type) {
    SCOPED_TRACE(type);
    const std::string indices = Typed(type, "2,2");
    const v1::Tensor table = ToMessage({1, Md("3,2", "nc"), {1, 2, 3, 4, 5, 6}});
    const v1::Tensor which = ToMessage<T>(2, indices, {2, 0, T{-1}, 2});
    const v1::Tensor dy = ToMessage({145, Typed("F32", "2,2,2"), {1, 2, 3, 4, 10, 20, 100, 200}});
    std::vector<float> values;
    grpc::Status status = Run(Rows(indices, "2,2,2"), {table, which}, &values);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(values, ElementsAre(5, 6, 1, 2, 5, 6, 5, 6));
    status = Run(Rows(indices, "2,2,2", kOfWeights), {which, dy}, &values);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(values, ElementsAre(3, 4, 0, 0, 111, 222));
  }
};

TEST_F(GatherPrimitiveTest, EveryTypeOfIndices) {
  Start();
  ExpectBothWays<int32_t>("S32");
  ExpectBothWays<int64_t>("S64");
  ExpectBothWays<float>("F32");
}

TEST_F(GatherPrimitiveTest, ArgumentsHaveNamesAndDirections) {
  Start();
  v1::CreateResponse created;
  ASSERT_TRUE(Create(Rows(Typed("S64", "2"), "2,2", kOfWeights), &created).ok());
  std::map<std::string, bool> written;
  for (const v1::ArgumentDesc& argument : created.arguments()) {
    written[argument.name()] = argument.written();
    if (argument.argument() == v1::ARGUMENT_INDICES) {
      EXPECT_EQ(argument.desc().type(), v1::DATA_TYPE_S64);
    }
  }
  EXPECT_EQ(written, (std::map<std::string, bool>{
                         {"indices", false}, {"diff_dst", false}, {"diff_weights", true}}));
  EXPECT_EQ(created.implementation(), "gather/slice_sum");
}

TEST_F(GatherPrimitiveTest, AnyAxisTypeAndLayout) {
  Start();
  const std::string turned = "{ dims: [2,2] type: DATA_TYPE_S64 strides { values: [1, 2] } }";
  const std::string primitive =
      absl::StrCat("gather { axis: 1 src ", Typed("U8", "2,3"), " indices ", turned, " dst ",
                   Typed("U8", "2,2,2"), "}");
  v1::ExecuteRequest request;
  *request.mutable_primitive() = FromText<v1::PrimitiveDesc>(primitive);
  *request.add_inputs() = ToMessage<uint8_t>(1, Typed("U8", "2,3"), {1, 2, 3, 4, 5, 6});
  // Sent in the layout that the primitive has, and in another one.
  *request.add_inputs() = ToMessage<int64_t>(2, turned, {2, 0, 1, 0});
  v1::ExecuteResponse response;
  grpc::Status status = Execute(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(response.outputs(0).content(), ElementsAre(3, 2, 1, 1, 6, 5, 4, 4));
  *request.mutable_inputs(1) = ToMessage<int64_t>(2, Typed("S64", "2,2"), {2, 1, 0, 0});
  status = Execute(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(response.outputs(0).content(), ElementsAre(3, 2, 1, 1, 6, 5, 4, 4));
}

TEST_F(GatherPrimitiveTest, AnIndexOutsideIsNamed) {
  Start();
  const v1::Tensor table = ToMessage({1, Md("3,2", "nc"), {1, 2, 3, 4, 5, 6}});
  const v1::Tensor dy = ToMessage({145, Typed("F32", "2,2"), {1, 2, 3, 4}});
  const std::string wide = Typed("S64", "2"), narrow = Typed("S32", "2"), real = Typed("F32", "2");
  const struct {
    std::string indices;
    v1::Tensor which;
    const char* says;
  } cases[] = {
      {narrow, ToMessage<int32_t>(2, narrow, {0, 3}), "index 3 is outside the 3 elements along"},
      {narrow, ToMessage<int32_t>(2, narrow, {-4, 0}), "index -4 is outside"},
      {wide, ToMessage<int64_t>(2, wide, {0, std::numeric_limits<int64_t>::min()}),
       "index -9223372036854775808 is outside"},
      {wide, ToMessage<int64_t>(2, wide, {0, int64_t{1} << 32}), "index 4294967296 is outside"},
      {real, ToMessage<float>(2, real, {0, std::numeric_limits<float>::quiet_NaN()}),
       "index nan is outside"},
      {real, ToMessage<float>(2, real, {std::numeric_limits<float>::infinity(), 0}),
       "index inf is outside"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.says);
    std::vector<float> values;
    for (bool forward : {true, false}) {
      const grpc::Status status =
          forward ? Run(Rows(one.indices, "2,2"), {table, one.which}, &values)
                  : Run(Rows(one.indices, "2,2", kOfWeights), {one.which, dy}, &values);
      EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
      EXPECT_THAT(status.error_message(), HasSubstr(one.says));
    }
    EXPECT_TRUE(values.empty());
  }
}

TEST_F(GatherPrimitiveTest, CreateSaysWhatDoesNotFit) {
  Start();
  const std::string two = Typed("S32", "2"), wide = Typed("S64", "2");
  const auto bad = grpc::INVALID_ARGUMENT;
  const struct {
    std::string primitive;
    grpc::StatusCode code;
    const char* says;
  } cases[] = {
      {Rows(two, "2,3"), bad, "give f32 [2,2], not"},
      {Rows(two, "2,2", "axis: 2"), bad, "axis 2"},
      {Rows(two, "2,2", "axis: -1"), bad, "axis -1"},
      {Rows(Typed("U8", "2"), "2,2"), grpc::UNIMPLEMENTED, "indices of f32, s32 and s64 only"},
      {Rows("{ }", "2,2"), bad, "indices: rank 0"},
      {Rows(Typed("S64", "0"), "2,2"), bad, "indices: dimension 0 is 0"},
      {Rows(two, "2,2", "prop_kind: PROP_KIND_BACKWARD_DATA"), grpc::UNIMPLEMENTED,
       "does not run backward_data"},
      {Rows(two, "2,2", "prop_kind: PROP_KIND_BACKWARD"), grpc::UNIMPLEMENTED,
       "does not run backward"},
      {Rows(two, "2,2", "prop_kind: 193"), bad, "unknown prop_kind 193"},
      {Rows(two, "2,2") + "attributes { post_ops { sum {} } }", grpc::UNIMPLEMENTED, ""},
      {absl::StrCat("gather { src ", wide, " indices ", two, " dst ", wide, "}"), bad,
       "src: type s64 is for the indices of a gather alone"},
      {absl::StrCat("reorder { src ", two, " dst ", wide, "}"), bad,
       "dst: type s64 is for the indices of a gather alone"},
      {absl::StrCat("sum { scales: 1 srcs ", wide, " dst ", two, "}"), bad, "srcs[0]: type s64"},
      {absl::StrCat("eltwise { op { algorithm: ELTWISE_RELU } src { dims: 2 type: 7 } dst ", two,
                    "}"),
       bad, "unknown data type 7; allowed are 1 (f16) to 6 (u8) and, for indices, 12 (s64)"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.primitive);
    v1::CreateResponse created;
    const grpc::Status status = Create(one.primitive, &created);
    EXPECT_EQ(status.error_code(), one.code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(one.says));
  }
}

TEST_F(GatherPrimitiveTest, ExecuteSaysWhatDoesNotFit) {
  Start();
  const std::string narrow = Typed("S32", "2"), wide = Typed("S64", "2");
  const v1::Tensor table = ToMessage({1, Md("3,2", "nc"), {1, 2, 3, 4, 5, 6}});
  const struct {
    std::vector<v1::Tensor> inputs;
    const char* says;
  } cases[] = {
      {{table}, "indices is missing"},
      {{table, ToMessage<int64_t>(2, wide, {0, 1})}, "indices has type s64, not s32"},
      {{table, ToMessage<int32_t>(2, Typed("S32", "3"), {0, 1, 2})}, "indices has shape [3]"},
      {{table, ToMessage<int32_t>(2, narrow, {0})}, "4 bytes, its descriptor needs 8"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.says);
    std::vector<float> values;
    const grpc::Status status = Run(Rows(narrow, "2,2"), one.inputs, &values);
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(one.says));
  }
}

// The reference of the gradient looks through all indices for each element.
TEST_F(GatherPrimitiveTest, AGradientThatOnlyTheReferenceTakesIsBounded) {
  Start();
  const auto gradient = [](absl::string_view layout) {
    return absl::StrCat("gather { ", kOfWeights, " src ", Md("100000,1", layout), " indices ",
                        Typed("S32", "100000"), " dst ", Typed("F32", "100000,1"), "}");
  };
  v1::CreateResponse created;
  grpc::Status status = Create(gradient("nc"), &created);
  EXPECT_TRUE(status.ok()) << status.error_message();
  const std::string columns =
      absl::StrCat("gather { ", kOfWeights, " src ", Md("100000,2", "cn"), " indices ",
                   Typed("S32", "100000"), " dst ", Typed("F32", "100000,2"), "}");
  status = Create(columns, &created);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << created.implementation();
  EXPECT_THAT(status.error_message(),
              HasSubstr("only gather/reference_backward takes this primitive, which computes "
                        "2e+10 operations"));
}

}  // namespace
}  // namespace tilewire::service
