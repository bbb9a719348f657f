// SPDX-License-Identifier: Apache-2.0
//
// Requests that a version answers before it is ready.
#include "service/models/configured_warm_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/service/models/loader_fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

// A version whose settings name requests to warm up with.
class ConfiguredWarmUpTest : public LoaderTest {
 protected:
  // Loads the model "warm" with these entries and returns why it does not serve, or OK.
  absl::Status Warm(const std::string& entries) {
    const auto before = models_->Peek("warm", 1);
    WriteFile(directory_ / "warm/config.pbtxt", "max_batch_size: 8\n" + entries);
    if (before == nullptr) WriteFile(directory_ / "warm/1/model.onnx", "");
    Until([&] {
      const auto now = models_->Peek("warm", 1);
      return now != nullptr && now != before && IsLive(*now) && !now->is_loading_next &&
             now->state != ModelState::kLoading;
    });
    const auto now = models_->Peek("warm", 1);
    if (now->model == nullptr) return now->load_status;
    const auto& model = static_cast<const tilewire::testing::FakeModel&>(*now->model);
    runs_ = model.runs();
    EXPECT_EQ(model.counted_runs(), 0) << "live profiles are of requests";
    return now->load_status;
  }
  int runs_ = 0;
};

constexpr char kRow[] =
    "inputs { key: 'row' value { data_type: TYPE_FP32 dims: [ 5 ] random_data: true } }";

TEST_F(ConfiguredWarmUpTest, EachEntryRunsAsOftenAsItSays) {
  WriteFile(directory_ / "warm/warmup/pixels", std::string(2 * 24 * 4, 'x'));
  EXPECT_THAT(Warm(absl::StrCat(
                  "model_warmup { name: 'zeros' count: 2 inputs { key: 'image' value { data_type: "
                  "TYPE_FP32 dims: [ 2, 3, 4 ] zero_data: true } } ",
                  kRow,
                  "} model_warmup { name: 'file' batch_size: 2 inputs { key: 'image' value { "
                  "data_type: TYPE_FP32 dims: [ 2, 3, 4 ] input_data_file: 'pixels' } }",
                  kRow, "}")),
              IsOk());
  EXPECT_EQ(runs_, 3);
}

TEST_F(ConfiguredWarmUpTest, AnEntryThatFailsKeepsTheVersionFromServing) {
  const auto entry = [](const char* image) {
    return absl::StrCat("model_warmup { name: 'first' inputs { key: 'image' value { ", image,
                        " } } ", kRow, " }");
  };
  const struct {
    std::string text;
    const char* why;
  } cases[] = {
      {absl::StrCat("model_warmup { name: 'first' ", kRow, " }"),
       "model_warmup 'first': input 'image': it is missing"},
      {entry("data_type: TYPE_INT32 dims: [ 2, 3, 4 ]"), "its data_type is not TYPE_FP32"},
      {entry("data_type: TYPE_FP32 dims: [ 2, 3, 5 ]"), "its shape [1,2,3,5] does not match"},
      {entry("data_type: TYPE_FP32 dims: [ 2, 3, 4 ] input_data_file: 'none'"),
       "the file 'none' is missing from the model's folder warmup"},
      {entry("data_type: TYPE_FP32 dims: [ 2, 3, 4 ] input_data_file: '../1/model.onnx'"),
       "its file is not a name in the folder warmup"},
      {"model_warmup { name: 'first' batch_size: 9 }", "is larger than max_batch_size"},
      {"model_warmup { name: 'first' inputs { key: 'none' value { } } }", "input 'none': unknown"},
  };
  for (const auto& test : cases)
    EXPECT_THAT(Warm(test.text), StatusIs(absl::StatusCode::kInvalidArgument, test.why));
}

}  // namespace
}  // namespace tilewire::service
