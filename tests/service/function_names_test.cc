// SPDX-License-Identifier: Apache-2.0
//
// The protocol's functions are those of the engine's table, by number and by name.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/functions/function.h"
#include "gtest/gtest.h"
#include "protos/tilewire.pb.h"

namespace tilewire::service {
namespace {

using functions::Function;

TEST(FunctionNamesTest, EltwiseOffersWhatHasCode) {
  EXPECT_EQ(v1::ELTWISE_RELU, 1);
  for (int i = 0; i < functions::kRealFunctionCount; ++i) {
    const auto function = static_cast<Function>(i);
    const int number = i + v1::ELTWISE_RELU;
    SCOPED_TRACE(AlgorithmName(function));
    // Its alpha and beta name a format of numbers, which only models bring.
    const bool is_internal = function == Function::kRoundBits;
    ASSERT_EQ(functions::HasCode(function) && !is_internal, v1::EltwiseAlgorithm_IsValid(number));
    if (!v1::EltwiseAlgorithm_IsValid(number)) continue;
    EXPECT_EQ(v1::EltwiseAlgorithm_Name(number),
              absl::StrCat("ELTWISE_", absl::AsciiStrToUpper(AlgorithmName(function))));
  }
  EXPECT_LE(v1::EltwiseAlgorithm_MAX, functions::kRealFunctionCount);
}

TEST(FunctionNamesTest, BinaryBeginsWithAdd) {
  for (int number = 0; number <= v1::BinaryAlgorithm_MAX; ++number) {
    const auto function = static_cast<Function>(static_cast<int>(Function::kAdd) + number);
    EXPECT_EQ(v1::BinaryAlgorithm_Name(number),
              absl::StrCat("BINARY_", absl::AsciiStrToUpper(AlgorithmName(function))));
  }
}

}  // namespace
}  // namespace tilewire::service
