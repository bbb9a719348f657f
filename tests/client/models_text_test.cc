// SPDX-License-Identifier: Apache-2.0
#include "client/tables/models_text.h"

#include <gtest/gtest.h>

namespace tilewire::client {
namespace {

TEST(ModelTextTest, IsTheModelAndWhatItTakes) {
  const ModelMetadata metadata = {
      .name = "cats",
      .versions = {"6", "7"},
      .inputs = {{"image", "FP32", {-1, 3, 24, -1}}, {"size", "INT64", {1, 2}}},
      .outputs = {{"logits", "FP32", {-1, 10}}},
      .properties = {{"precision", "exact"}}};
  const std::string tensors =
      "  inputs   image FP32 Nx3x24x?, size INT64 1x2\n"
      "  outputs  logits FP32 Nx10\n"
      "  precision exact\n";
  EXPECT_EQ(ModelText({"cats", "7", "READY", ""}, true, metadata),
            "cats                 version 7    ready\n" + tensors);
  EXPECT_EQ(ModelText({"cats", "", "", ""}, true, metadata),
            "cats                 version 6,7  ready\n" + tensors);
  EXPECT_EQ(ModelText({"cats", "6", "UNAVAILABLE", "no memory"}, false, {}),
            "cats                 version 6    not ready  no memory\n");
  EXPECT_EQ(ModelText({"cats", "8", "LOADING", "it is tried out and loaded"}, false, {}),
            "cats                 version 8    loading  it is tried out and loaded\n");
  EXPECT_EQ(ModelText({"\u6A21\u578B", "1", "READY", ""}, true, {}),
            "\u6A21\u578B                 version 1    ready\n");
}

TEST(ModelTextTest, ATerminalObeysNothingOfIt) {
  const ModelMetadata metadata = {.name = "c",
                                  .inputs = {{"i\nn", "F\x1b", {1}}},
                                  .outputs = {{"o\x07ut", "FP32", {1}}},
                                  .properties = {{"precision", "\u202Eexact"}}};
  EXPECT_EQ(ModelText({"c\x1b[2J\n", "\t1", "UNAVAILABLE", "a\nb\x07"}, false, metadata),
            "c?[2J?               version ?1   not ready  a?b?\n"
            "  inputs   i?n F? 1\n"
            "  outputs  o?ut FP32 1\n"
            "  precision ?exact\n");
}

}  // namespace
}  // namespace tilewire::client
