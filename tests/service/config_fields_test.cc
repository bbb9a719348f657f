// SPDX-License-Identifier: Apache-2.0
//
// The table of settings: it has every field of the message and no other, and the page for operators
// says what its rows say.
#include "service/models/config_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"

namespace tilewire::service {
namespace {

using ::testing::HasSubstr;

struct Row {
  absl::string_view path;
  SettingClass effect;
  absl::string_view text;
};
const std::vector<Row> kFieldRows = {
#define CONFIG_FIELD(path, effect, text) {path, SettingClass::effect, text},
#include "service/models/config_fields.inc"
};
const std::vector<Row> kParameterRows = {
#define CONFIG_PARAMETER(key, effect, text) {key, SettingClass::effect, text},
#include "service/models/config_fields.inc"
};

// Null where the message has no such field.
const google::protobuf::FieldDescriptor* FieldAt(absl::string_view path) {
  const google::protobuf::Descriptor* message = inference::ModelConfig::descriptor();
  const google::protobuf::FieldDescriptor* field = nullptr;
  for (absl::string_view name : absl::StrSplit(path, '.')) {
    field = message == nullptr ? nullptr : message->FindFieldByName(std::string(name));
    if (field == nullptr) return nullptr;
    message = field->message_type();
  }
  return field;
}

TEST(ConfigFieldsTest, EachFieldHasARowAndEachRowAField) {
  std::set<std::string> paths;
  for (const Row& row : kFieldRows) {
    EXPECT_NE(FieldAt(row.path), nullptr) << row.path;
    EXPECT_TRUE(paths.insert(std::string(row.path)).second) << row.path << " has two rows";
    EXPECT_FALSE(row.text.empty()) << row.path;
  }
  const google::protobuf::Descriptor& config = *inference::ModelConfig::descriptor();
  for (int i = 0; i < config.field_count(); ++i)
    EXPECT_EQ(paths.count(config.field(i)->name()), 1) << config.field(i)->name();
}

TEST(ConfigFieldsTest, ThePageSaysWhatTheRowsSay) {
  std::ostringstream page;
  page << std::ifstream("deploy/coming_from_triton.md").rdbuf();
  size_t rows = 0;
  for (const auto& table : {kFieldRows, kParameterRows}) {
    for (const Row& row : table) {
      EXPECT_THAT(page.str(),
                  HasSubstr(absl::StrCat("| `", row.path, "` | ", SettingClassName(row.effect),
                                         " | ", row.text, " |\n")));
      ++rows;
    }
  }
  EXPECT_GT(rows, 50u);
}

TEST(ConfigFieldsTest, SettingsBelowARowAreToldOnceAndInOrder) {
  inference::ModelConfig config;
  config.add_instance_group()->set_count(2);
  config.add_instance_group()->mutable_rate_limiter()->set_priority(1);
  config.add_input()->mutable_reshape()->add_shape(1);
  config.add_input()->set_allow_ragged_batch(true);
  std::string told;
  for (const Setting& setting : SettingsIn(config)) absl::StrAppend(&told, setting.name, " ");
  EXPECT_EQ(told, "input input.reshape input.allow_ragged_batch instance_group ");
}

}  // namespace
}  // namespace tilewire::service
