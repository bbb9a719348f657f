// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/report_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/load/record.h"
#include "client/load/report/report_html.h"
#include "tests/client/load_reports.h"

namespace tilewire::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Seconds of so many answers, which took as many milliseconds as is said.
LoadReport LoadOf(const std::string& name, const std::vector<int>& answers, int ms) {
  LoadReport report;
  report.name = name;
  report.elapsed = absl::Seconds(static_cast<double>(answers.size()));
  for (const int count : answers) {
    report.windows.push_back({.start_s = static_cast<double>(report.windows.size()),
                              .answered = count,
                              .p50 = absl::Milliseconds(ms),
                              .p99 = absl::Milliseconds(ms)});
    report.answered += count;
    for (int i = 0; i < count; ++i) report.latencies.Add(absl::Milliseconds(ms));
  }
  return report;
}

TEST(ReportDifference, IsInPerCentWithTheSpreadOfTheSeconds) {
  const auto differences = Differences({LoadOf("4 callers", {190, 210, 190, 210}, 10)},
                                       {LoadOf("5 callers", {210, 210, 210, 210}, 8)});
  ASSERT_THAT(differences, SizeIs(1));
  EXPECT_EQ(differences[0].name, "5 callers");
  // The deviation of 190, 210, 190 and 210 is 11.55; of their mean, half of it: 2.89 % of 200.
  EXPECT_EQ(DifferenceText(differences[0].rate), "+5.0 % ±6.1");
  EXPECT_EQ(DifferenceText(differences[0].p50), "-20.0 % ±0.0");
  EXPECT_EQ(DifferenceText(differences[0].p99), "-20.0 % ±0.0");
}

TEST(ReportDifference, FewSecondsHaveNoSpreadAndFewAnswersNoP99) {
  const auto differences = Differences({LoadOf("a", {40, 40}, 10)}, {LoadOf("a", {120, 120}, 10)});
  ASSERT_THAT(differences, SizeIs(1));
  EXPECT_EQ(DifferenceText(differences[0].rate), "+200 %");
  EXPECT_EQ(DifferenceText(differences[0].p99), "-");
}

TEST(ReportDifference, LoadsAreComparedByName) {
  const LoadReport a = LoadOf("a", {100, 100, 100}, 10), b = LoadOf("b", {200, 200, 200}, 10);
  EXPECT_THAT(Differences({a, b}, {LoadOf("c", {1}, 1)}), IsEmpty());
  const auto differences = Differences({a, b, a}, {b, LoadOf("a", {110, 110, 110}, 10), a, a});
  ASSERT_THAT(differences, SizeIs(3)) << "a third one has no counterpart";
  EXPECT_EQ(DifferenceText(differences[0].rate), "+0.0 % ±0.0");
  EXPECT_EQ(DifferenceText(differences[1].rate), "+10.0 % ±0.0");
  EXPECT_EQ(differences[1].name, "a");
}

TEST(ReportDifference, IsSaidInTextAndPage) {
  LoadReport odd = LoadOf("<4> callers", {100, 100, 100}, 10);
  const LoadComparison comparison{
      .earlier = "monday.json", .later = "tuesday.json", .loads = Differences({odd}, {odd})};
  EXPECT_EQ(ComparisonOfFilesText(comparison),
            std::string("\ntuesday.json against monday.json\n"
                        "                      per s             p50             p99\n"
                        "<4> callers     +0.0 % ±0.0     +0.0 % ±0.0     +0.0 % ±0.0\n(") +
                kSpreadNote + ")\n");
  EXPECT_THAT(ComparisonOfFilesText({"a", "b", {}}), IsEmpty());
  LoadRecord record{.title = "t", .runs = {odd, odd}};
  EXPECT_THAT(ToHtml(record), Not(HasSubstr("tuesday")));
  record.comparisons = {comparison};
  EXPECT_THAT(ToHtml(record), AllOf(HasSubstr("tuesday.json against monday.json"),
                                    HasSubstr("<td>&lt;4&gt; callers<td>+0.0 % ±0.0<td>")));
}

}  // namespace
}  // namespace tilewire::client
