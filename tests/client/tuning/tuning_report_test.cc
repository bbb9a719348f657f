// SPDX-License-Identifier: Apache-2.0
#include "client/tuning/tuning_report.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/image.h"
#include "client/tuning/thumbnail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::client::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TuningReport MakeTuningReport() {
  TuningReport report{.model = "cats.onnx",
                      .written = {"int8.onnx"},
                      .settings = {{"--budget", "top1_changed<=1%"}},
                      .budget = ErrorBudget::Parse("top1_changed<=1%").value()};
  TuningResult& result = report.result;
  result.keeps_budget = true;
  result.chosen = {.value = 0, .examples = 400, .interval = ShareInterval{0, 0.0095}};
  result.held_out = {.value = 0.0025, .examples = 400, .interval = ShareInterval{0.0004, 0.0095}};
  result.exact_time = absl::Milliseconds(12);
  result.tuned_time = absl::Milliseconds(8);
  result.exact_bytes = 40'000'000;
  result.tuned_bytes = 10'100'000;
  result.nodes = {{.node = "conv<1>\x1b[2J",
                   .op = "Conv",
                   .precision = TunedPrecision::kInt8,
                   .reason = "int8 saves 40 us, at an l2 of 1.0e-03 alone",
                   .input = "x",
                   .low = -1,
                   .high = 2,
                   .range_method = "squares",
                   .error_alone = 1e-3,
                   .exact_time = absl::Microseconds(100),
                   .int8_time = absl::Microseconds(60)},
                  {.node = "gemm", .op = "Gemm", .reason = "its time was not measured"}};
  result.curve = {{.error = 0.004, .estimate = absl::Milliseconds(7)},
                  {.error = 0, .estimate = absl::Milliseconds(8), .is_chosen = true}};
  return report;
}

TEST(TuningReportTest, TextHasTheFiguresAndTheInterval) {
  const std::string text = TuningText(MakeTuningReport());
  EXPECT_THAT(text, HasSubstr("cats.onnx: 1 of 2 layers int8, written to int8.onnx\n"));
  EXPECT_THAT(text, HasSubstr("budget     top1_changed<=1%\n"));
  EXPECT_THAT(text, HasSubstr("held out   0.25 % of 400 examples, between 0.04 % and 0.95 %\n"));
  EXPECT_THAT(text, HasSubstr("time       12 ms exact, 8 ms tuned: 1.50x\n"));
  EXPECT_THAT(text, HasSubstr("file       40.0 MB exact, 10.1 MB tuned\n"));
  EXPECT_THAT(text,
              HasSubstr("int8           100.0       60.0   1.0e-03  squares     Conv conv<1>"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("note:")));
  EXPECT_THAT(text, Not(HasSubstr("before us")));
}

TEST(TuningReportTest, ShowsRowsByMeasurement) {
  TuningReport report = MakeTuningReport();
  report.result.rows_tried = 7;
  EXPECT_THAT(TuningText(report), HasSubstr("note: of 7 rows that were tried, none is clearly"));
  TunedNode& node = report.result.nodes[1];
  node.row = "inner_product/avx2_f32";
  node.row_before = absl::Microseconds(50);
  node.row_after = absl::Microseconds(40);
  const std::string text = TuningText(report);
  EXPECT_THAT(text, HasSubstr("1 of 2 layers int8, 1 row by measurement, written to"));
  EXPECT_THAT(text,
              HasSubstr("     50.0       40.0  inner_product/avx2_f32                gemm\n"));
  EXPECT_THAT(text, Not(HasSubstr("note: of 7 rows")));
  EXPECT_THAT(TuningJson(report), HasSubstr("\"row\": \"inner_product/avx2_f32\""));
}

TEST(TuningReportTest, Bf16HasColumnsAndAWordAboutTheQdqFile) {
  TuningReport report = MakeTuningReport();
  report.has_qdq = true;
  TunedNode& node = report.result.nodes[1];
  node.precision = TunedPrecision::kBf16;
  node.bf16_alone = 2e-4;
  node.bf16_time = absl::Microseconds(33);
  report.written.push_back("tilewire.tuning");
  const std::string text = TuningText(report);
  EXPECT_THAT(text,
              HasSubstr("1 of 2 layers int8, 1 bf16, written to int8.onnx and tilewire.tuning"));
  EXPECT_THAT(text, HasSubstr("bf16               -       33.0   2.0e-04          -         -  "));
  EXPECT_THAT(text, HasSubstr("in the QDQ file these layers are exact"));
  EXPECT_THAT(TuningHtml(report), HasSubstr("<td>bf16<td>-<td>33.0<td>2.0e-04<td>"));
}

TEST(TuningReportTest, ChangedAnswersAccuracyAndMemoryAreTold) {
  TuningReport report = MakeTuningReport();
  TuningResult& result = report.result;
  result.changed_share = result.held_out;
  result.changed = {{.example = 7,
                     .exact_class = 0,
                     .tuned_class = 1,
                     .exact_probability = 0.51,
                     .tuned_probability = 0.493,
                     .label = 0}};
  result.accuracy = Accuracy{400, 390, 389, {0.95, 0.99}, {0.94, 0.98}};
  result.exact_memory = {102'000'000, 5'000'000, 100'000};
  result.tuned_memory = {26'000'000, 2'000'000, 0};
  report.classes = {"cat", "dog<"};
  report.pictures[7] = {"pictures/7.png", "<img src=x>"};
  const std::string text = TuningText(report);
  EXPECT_THAT(text, HasSubstr("answers    1 of 400 changed: 0.25 %; of all such inputs, with a "
                              "confidence of 95 %, between 0.04 % and 0.95 %\n"));
  EXPECT_THAT(text, HasSubstr("accuracy   97.50 % exact (between 95.00 % and 99.00 %), 97.25 % "
                              "tuned (between 94.00 % and 98.00 %), of 400 held out\n"));
  EXPECT_THAT(text, HasSubstr("memory     102 MB exact, 26.0 MB tuned; for each run 5.10 MB and "
                              "2.00 MB more\n"));
  EXPECT_THAT(text, HasSubstr("  cat 0.51 -> dog< 0.49  pictures/7.png, right: cat\n"));
  const std::string page = TuningHtml(report);
  EXPECT_THAT(page, HasSubstr("<td><img src=x><td>pictures/7.png<td>cat 0.51<td>dog&lt; 0.49"));
  const auto object = nlohmann::json::parse(TuningJson(report));
  EXPECT_EQ(object["accuracy"]["exact_right"], 390);
  EXPECT_EQ(object["changed"][0]["input"], "pictures/7.png");
  EXPECT_EQ(object["changed"][0]["tuned_class"], 1);
  EXPECT_EQ(object["tuned_memory"]["held_bytes"], 26'000'000);
  // Arrays have no names, and of many answers not all are printed.
  report.classes.clear();
  report.pictures.clear();
  result.changed.assign(30, result.changed[0]);
  EXPECT_THAT(TuningText(report), HasSubstr("  0 0.51 -> 1 0.49  input 7, right: 0\n"));
  EXPECT_THAT(TuningText(report), HasSubstr("  and 10 more, which --html and --json have\n"));
}

TEST(TuningReportTest, TheBestPointsAreACurveWithTheChosenOne) {
  TuningReport report = MakeTuningReport();
  report.result.curve.push_back({.error = 0.004, .estimate = absl::Milliseconds(9)});
  const std::string text = TuningText(report);
  EXPECT_THAT(text, HasSubstr("         7 ms  0.40 %\n         8 ms  0.00 %  <- chosen\n"));
  EXPECT_THAT(text, Not(HasSubstr("9 ms  0.40")));
  EXPECT_EQ(BestPoints(report).size(), 2u);
  EXPECT_THAT(TuningHtml(report), HasSubstr("(answers changed, %)"));
}

TEST(TuningReportTest, WhyALayerIsNotInt8StandsBelowIt) {
  TuningReport report = MakeTuningReport();
  const std::string text = TuningText(report);
  EXPECT_THAT(text, HasSubstr(" Gemm gemm\n           its time was not measured\n"));
  EXPECT_THAT(text, Not(HasSubstr("int8 saves 40 us")));
}

TEST(TuningReportTest, AGoalIsTold) {
  TuningReport report = MakeTuningReport();
  report.goal = 2;
  report.result.reaches_goal = false;
  report.written.clear();
  const std::string text = TuningText(report);
  EXPECT_THAT(text, HasSubstr("nothing was found that keeps top1_changed<=1% and is 2x "
                              "as fast as the exact model; nothing is written\n"));
  EXPECT_THAT(text, HasSubstr("tuned: 1.50x, 2x wanted\n"));
  EXPECT_THAT(text, HasSubstr("held out   the nearest: "));
  EXPECT_EQ(nlohmann::json::parse(TuningJson(report))["reaches_goal"], false);
  // A goal alone: a budget that was not given is not said to be missed.
  report.has_budget = false;
  EXPECT_EQ(WantedText(report), "is 2x as fast as the exact model");
  EXPECT_THAT(TuningText(report), HasSubstr("nothing was found that is 2x as fast as the exact"));
  EXPECT_THAT(TuningText(report), HasSubstr("budget     none was given: top1_changed<=1%, and "));
}

TEST(TuningReportTest, ASecondTryIsTold) {
  TuningReport report = MakeTuningReport();
  report.result.first_held_out = MeasuredError{.value = 0.02, .examples = 400};
  EXPECT_THAT(TuningNotes(report),
              ElementsAre(HasSubstr("a first choice missed on the held-out examples, with 2.00 %; "
                                    "this second one keeps to half the budget")));
  report.result.keeps_budget = false;
  EXPECT_THAT(TuningNotes(report), ElementsAre(HasSubstr("did not help")));
}

TEST(TuningReportTest, ExamplesThatTheTimeLeftOutAreTold) {
  TuningReport report = MakeTuningReport();
  report.result.left_out = 220;
  EXPECT_THAT(
      TuningNotes(report),
      ElementsAre("the time had no room for 220 examples, which were left out; --time gives "
                  "more"));
  EXPECT_EQ(nlohmann::json::parse(TuningJson(report))["left_out"], 220);
}

TEST(TuningReportTest, TheLastComparisonIsTold) {
  TuningReport report = MakeTuningReport();
  report.result.finalists = {{.name = "exact", .time = absl::Milliseconds(12), .is_sure = true},
                             {.name = "all int8", .time = absl::Milliseconds(7), .error = 0.008},
                             {.name = "layer by layer",
                              .time = absl::Milliseconds(8),
                              .is_sure = true,
                              .is_chosen = true}};
  report.result.bolder_held_out = MeasuredError{.value = 0.0125, .examples = 400};
  const std::string text = TuningText(report);
  EXPECT_THAT(text, HasSubstr("in turns   exact 12 ms, all int8 7 ms (not sure to keep the "
                              "budget), layer by layer 8 ms (chosen)\n"));
  EXPECT_THAT(text, HasSubstr("note: a faster assignment kept the budget on the examples of the "
                              "choice, and missed it on the held-out ones, with 1.25 %\n"));
  const auto object = nlohmann::json::parse(TuningJson(report));
  EXPECT_EQ(object["in_turns"][1]["name"], "all int8");
  EXPECT_EQ(object["in_turns"][1]["sure"], false);
  EXPECT_EQ(object["in_turns"][2]["chosen"], true);
  EXPECT_EQ(object["bolder_held_out"]["value"], 0.0125);
  // Nothing is faster, and two runs of one model are not the one slower than the other.
  std::swap(report.result.finalists[0].is_chosen, report.result.finalists[2].is_chosen);
  report.result.tuned_time = report.result.exact_time;
  EXPECT_FALSE(IsSlower(report));
  report.result.bolder_held_out.reset();
  EXPECT_THAT(TuningNotes(report),
              ElementsAre(HasSubstr("nothing that keeps the budget is faster than the exact")));
}

TEST(TuningReportTest, ADropOfAccuracyIsInPercent) {
  TuningReport report = MakeTuningReport();
  report.budget = ErrorBudget::Parse("accuracy_drop<=1%").value();
  report.result.held_out.interval->high = 0.03;
  EXPECT_THAT(TuningText(report), HasSubstr("held out   0.25 % of 400 examples, between"));
  EXPECT_THAT(TuningText(report), HasSubstr("up to 3.00 % may be lost"));
  EXPECT_THAT(TuningHtml(report), HasSubstr("(accuracy lost, %)"));
}

TEST(ThumbnailTest, IsASmallBmp) {
  const Image grey{2, 100, 1, std::vector<uint8_t>(200, 7)};
  const std::string html = ThumbnailHtml(grey);
  EXPECT_THAT(html, HasSubstr("<img alt=\"\" width=64 height=1 src=\"data:image/bmp;base64,Qk"));
  EXPECT_THAT(html, HasSubstr("BwcHBwcH"));  // grey became three bytes per pixel
  EXPECT_EQ(ThumbnailHtml({}), "");
}

TEST(TuningReportTest, NotesSayWhatLimitsTheResult) {
  TuningReport report = MakeTuningReport();
  EXPECT_THAT(TuningNotes(report), IsEmpty());
  report.is_made_up = true;
  EXPECT_THAT(TuningText(report), HasSubstr("1 of 2 layers int8, by inputs that are MADE UP, "));
  report.result.held_out.interval->high = 0.03;
  report.result.tuned_time = absl::Milliseconds(12);
  report.result.is_out_of_time = true;
  EXPECT_THAT(TuningNotes(report),
              ElementsAre(HasSubstr("the inputs were made up"),
                          HasSubstr("400 held-out examples cannot show more: with a confidence of "
                                    "95 %, up to 3.00 % may change"),
                          HasSubstr("it is not faster than the exact model on this machine: "
                                    "1.00x; tune again"),
                          HasSubstr("--time gives more")));
}

TEST(TuningReportTest, ASlowerResultSaysWhatItIsStillGoodFor) {
  TuningReport report = MakeTuningReport();
  EXPECT_FALSE(IsSlower(report));
  report.result.tuned_time = absl::Milliseconds(24);
  EXPECT_TRUE(IsSlower(report));
  report.has_tuning = true;
  EXPECT_THAT(TuningNotes(report), ElementsAre(Not(HasSubstr("smaller"))))
      << "only a QDQ file may be smaller";
  EXPECT_THAT(TuningNotes(report), ElementsAre(HasSubstr("0.50x; without tilewire.tuning")));
  report.has_qdq = true;
  EXPECT_THAT(TuningNotes(report), ElementsAre(HasSubstr("; its file is smaller; ")));
  report.result.tuned_bytes = report.result.exact_bytes;
  EXPECT_THAT(TuningNotes(report), ElementsAre(Not(HasSubstr("smaller"))));
}

TEST(TuningReportTest, LayersOfWhichNothingIsKnownAreNoTable) {
  TuningReport report = MakeTuningReport();
  report.written.clear();
  report.result.keeps_budget = false;
  EXPECT_THAT(TuningText(report), HasSubstr("exact us"));
  for (TunedNode& node : report.result.nodes)
    node = {.node = node.node, .op = node.op, .range_method = node.range_method};
  EXPECT_THAT(TuningText(report), Not(HasSubstr("exact us")));
}

TEST(TuningReportTest, SmallProbabilitiesAreNotZero) {
  TuningReport report = MakeTuningReport();
  const ChangedWords words =
      WordsOf(report, {.exact_probability = 0.00123, .tuned_probability = 0.0101});
  EXPECT_EQ(words.exact, "0 0.001");
  EXPECT_EQ(words.tuned, "0 0.01");
}

TEST(TuningReportTest, ThePageHasTimesAndErrorsOfLayersAndSaysWhatColoursAre) {
  TuningReport report = MakeTuningReport();
  const std::string page = TuningHtml(report);
  EXPECT_THAT(page, HasSubstr("<th>exact, us<th>int8, us<th>l2 alone<th>why"));
  EXPECT_THAT(page, HasSubstr("<td>int8<td>100.0<td>60.0<td>1.0e-03<td class=wide>int8 saves"));
  EXPECT_THAT(page, HasSubstr("<td>exact<td>-<td>-<td>-<td class=wide>its time was not"));
  EXPECT_THAT(page, HasSubstr("\"></span>chosen, <span class=key"));
  EXPECT_THAT(page, HasSubstr("What the words mean"));
  report.result.nodes[1].row = "inner_product/avx2_f32";
  report.result.nodes[1].bf16_alone = 0;
  EXPECT_THAT(TuningHtml(report), HasSubstr("<th>bf16, us<th>l2 alone<th>int8, us<th>l2 alone<th>"
                                            "row<th>why"));
  EXPECT_THAT(TuningHtml(report), HasSubstr("<td>inner_product/avx2_f32<td class=wide>"));
}

TEST(TuningReportTest, NothingThatKeepsTheBudgetIsSaidWithTheNearest) {
  TuningReport report = MakeTuningReport();
  report.written.clear();
  report.result.keeps_budget = false;
  report.result.nodes[0].precision = TunedPrecision::kExact;
  const std::string text = TuningText(report);
  EXPECT_THAT(text,
              HasSubstr("cats.onnx: nothing was found that keeps top1_changed<=1%; nothing is "
                        "written\n"));
  EXPECT_THAT(text, HasSubstr("held out   the nearest: 0.25 % of 400 examples"));
  EXPECT_THAT(TuningHtml(report),
              HasSubstr("<p>nothing was found that keeps top1_changed&lt;=1%; "));
}

TEST(TuningReportTest, JsonIsForPrograms) {
  TuningReport report = MakeTuningReport();
  report.budget = ErrorBudget::Parse("psnr>=40").value();
  report.result.chosen = {.value = std::numeric_limits<double>::infinity(), .examples = 4};
  const auto object = nlohmann::json::parse(TuningJson(report));
  EXPECT_EQ(object["written"][0], "int8.onnx");
  EXPECT_EQ(object["curve"][1]["chosen"], true);
  EXPECT_EQ(object["budget"], "psnr>=40");
  EXPECT_TRUE(object["chosen_on"]["value"].is_null());
  EXPECT_FALSE(object["chosen_on"].contains("interval"));
  EXPECT_EQ(object["held_out"]["interval"][1], 0.0095);
  EXPECT_EQ(object["nodes"][0]["precision"], "int8");
  EXPECT_EQ(object["nodes"][0]["exact_us"], 100);
  EXPECT_TRUE(object["nodes"][1]["l2_alone"].is_null());
  EXPECT_EQ(object["settings"]["--budget"], "top1_changed<=1%");
}

TEST(TuningReportTest, PageShowsTextsAsTexts) {
  const std::string page = TuningHtml(MakeTuningReport());
  EXPECT_THAT(page, HasSubstr("conv&lt;1&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("conv<1>")));
  EXPECT_THAT(page, HasSubstr("-1 to 2, by squares"));
  EXPECT_THAT(page, HasSubstr("top1_changed&lt;=1%"));
}

}  // namespace
}  // namespace tilewire::client::testing
