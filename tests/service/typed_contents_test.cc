// SPDX-License-Identifier: Apache-2.0
//
// Typed contents of every type of the protocol, to the ends of its range and one beyond.
#include "service/wire/typed_contents.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using tilewire::testing::StatusIs;
constexpr auto kBad = absl::StatusCode::kInvalidArgument;

// The contents as elements of `type`.
template <typename T>
std::vector<T> ElementsOf(const inference::InferTensorContents& contents, DataType type,
                          int64_t count) {
  std::string converted;
  const auto bytes = TypedBytes(contents, type, count, &converted);
  if (!bytes.ok()) ADD_FAILURE() << bytes.status();
  std::vector<T> elements(bytes.ok() ? bytes->size() / sizeof(T) : 0);
  if (!elements.empty()) std::memcpy(elements.data(), bytes->data(), bytes->size());
  return elements;
}

// The ends of the range of T, from a field of `add`.
template <typename T, typename Add>
void ExpectRange(DataType type, Add add) {
  SCOPED_TRACE(DataTypeName(type));
  using Limits = std::numeric_limits<T>;
  inference::InferTensorContents contents;
  add(&contents, Limits::lowest());
  add(&contents, Limits::max());
  EXPECT_EQ(ElementsOf<T>(contents, type, 2), (std::vector<T>{Limits::lowest(), Limits::max()}));
}

TEST(TypedContentsTest, EveryTypeToTheEndsOfItsRange) {
  const auto add_int = [](auto* c, auto value) { c->add_int_contents(value); };
  const auto add_uint = [](auto* c, auto value) { c->add_uint_contents(value); };
  ExpectRange<int8_t>(DataType::kS8, add_int);
  ExpectRange<int16_t>(DataType::kS16, add_int);
  ExpectRange<int32_t>(DataType::kS32, add_int);
  ExpectRange<uint8_t>(DataType::kU8, add_uint);
  ExpectRange<uint16_t>(DataType::kU16, add_uint);
  ExpectRange<uint32_t>(DataType::kU32, add_uint);
  ExpectRange<int64_t>(DataType::kS64, [](auto* c, auto v) { c->add_int64_contents(v); });
  ExpectRange<uint64_t>(DataType::kU64, [](auto* c, auto v) { c->add_uint64_contents(v); });
  ExpectRange<float>(DataType::kF32, [](auto* c, auto v) { c->add_fp32_contents(v); });
  ExpectRange<double>(DataType::kF64, [](auto* c, auto v) { c->add_fp64_contents(v); });
}

TEST(TypedContentsTest, TruthValues) {
  inference::InferTensorContents contents;
  contents.add_bool_contents(true);
  contents.add_bool_contents(false);
  EXPECT_EQ(ElementsOf<uint8_t>(contents, DataType::kBool, 2), (std::vector<uint8_t>{1, 0}));
}

TEST(TypedContentsTest, WhatDoesNotFitIsRefused) {
  std::string converted;
  inference::InferTensorContents wide;
  wide.add_int_contents(32768);
  EXPECT_THAT(TypedBytes(wide, DataType::kS16, 1, &converted),
              StatusIs(kBad, "value 32768 is outside -32768 to 32767"));
  EXPECT_THAT(TypedBytes(wide, DataType::kS64, 1, &converted),
              StatusIs(kBad, "int_contents is set; its datatype needs int64_contents"));
  EXPECT_THAT(TypedBytes(wide, DataType::kS32, 2, &converted),
              StatusIs(kBad, "int_contents has 1 elements, the shape needs 2"));
  for (DataType type : {DataType::kF16, DataType::kBf16})
    EXPECT_THAT(TypedBytes(wide, type, 1, &converted), StatusIs(kBad, "raw_input_contents only"));
}

}  // namespace
}  // namespace tilewire::service
