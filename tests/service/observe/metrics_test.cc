// SPDX-License-Identifier: Apache-2.0
#include "service/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace tilewire::service {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, TellsOnlyWhatHasAValue) {
  MetricsText text;
  text.Add(Metric::kRows, {"cats", "7"}, 12);
  text.Add(Metric::kCores, 4);
  EXPECT_EQ(text.Text(),
            "# HELP tilewire_rows_total Rows (batch elements) of requests that were answered\n"
            "# TYPE tilewire_rows_total counter\n"
            "tilewire_rows_total{model=\"cats\",version=\"7\"} 12\n"
            "# HELP tilewire_cores Compute threads\n"
            "# TYPE tilewire_cores gauge\n"
            "tilewire_cores 4\n");
}

TEST(MetricsTest, LabelsAreEscaped) {
  MetricsText text;
  text.Add(Metric::kRows, {"a\"b\\c\nd", "1"}, 1);
  EXPECT_THAT(text.Text(), HasSubstr(R"(model="a\"b\\c\nd",version="1")"));
}

TEST(MetricsTest, AHistogramCountsUpToSixteenBoundsExactly) {
  Histogram histogram;
  histogram.Record(absl::Microseconds(100));
  histogram.Record(absl::Microseconds(101));
  histogram.Record(absl::Milliseconds(20));
  histogram.Record(absl::Seconds(11));
  MetricsText text;
  text.Add(Metric::kRequestSeconds, {"cats", "7"}, InSeconds(histogram.Sum()));
  const std::string told = text.Text();
  const auto bucket = [](const char* bound, int count) {
    return absl::StrCat("tilewire_request_seconds_bucket{model=\"cats\",version=\"7\",le=\"", bound,
                        "\"} ", count, "\n");
  };
  EXPECT_THAT(told, HasSubstr(bucket("0.0001", 1)));
  EXPECT_THAT(told, HasSubstr(bucket("0.0002", 2)));
  EXPECT_THAT(told, HasSubstr(bucket("0.01", 2)));
  EXPECT_THAT(told, HasSubstr(bucket("0.02", 3)));
  EXPECT_THAT(told, HasSubstr(bucket("10", 3)));
  EXPECT_THAT(told, HasSubstr(bucket("+Inf", 4)));
  EXPECT_THAT(told, HasSubstr("tilewire_request_seconds_count{model=\"cats\",version=\"7\"} 4\n"));
  EXPECT_THAT(told,
              HasSubstr("tilewire_request_seconds_sum{model=\"cats\",version=\"7\"} 11.0202"));
}

void CheckRow(const std::string& name, const std::string& type, const std::string& help) {
  const bool is_compatible = absl::StartsWith(name, "nv_") || absl::StartsWith(name, "ovms_");
  EXPECT_TRUE(is_compatible || absl::EndsWith(name, "_total") == (type == "kCounter")) << name;
  EXPECT_TRUE(absl::ascii_isupper(help[0]) || absl::ascii_isdigit(help[0])) << name;
  EXPECT_FALSE(absl::StrContains(help, "\n")) << name;
}

// As Prometheus asks of names.
TEST(MetricsTest, CountersEndInTotalAndOthersDoNot) {
  std::set<std::string> names;
#define TILEWIRE_METRIC(id, name, type, labels, help) \
  CheckRow(name, #type, help);                        \
  EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
#include "service/observe/metric_list.inc"
#undef TILEWIRE_METRIC
  EXPECT_EQ(names.size(), static_cast<size_t>(Metric::kEnd));
}

}  // namespace
}  // namespace tilewire::service
