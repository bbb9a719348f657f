// SPDX-License-Identifier: Apache-2.0
#include "client/training/training_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_split.h"
#include "client/training/loss_curve.h"
#include "nlohmann/json.hpp"

namespace tilewire::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Two epochs of three updates, one of which was skipped.
TrainingReport TwoEpochs() {
  TrainingReport report{.model = "digits.onnx", .written = "trained.onnx", .epochs = 2};
  report.settings = {{"--lr", "0.05"}};
  report.parameters = {{.name = "fc.weight", .dims = {10, 40}},
                       {.name = "conv.weight", .dims = {8, 3, 3, 3}, .frozen = true}};
  TrainingRecord& record = report.record;
  record.updates_of_epoch = 3;
  record.losses = {2, 1, kNan, 0.5, 0.25, 0.25};
  record.examples = 48;
  record.before = HeldOut{.loss = 2.5, .right = 1, .judged = 10};
  record.epochs = {{.epoch = 1,
                    .loss = 1.5,
                    .rate = 0.05,
                    .skipped = 1,
                    .held_out = HeldOut{.loss = 1.25, .right = 5, .judged = 10}},
                   {.epoch = 2,
                    .loss = 0.375,
                    .rate = 0.005,
                    .held_out = HeldOut{.loss = 0.75, .right = 9, .judged = 10}}};
  record.elapsed = absl::Milliseconds(6540);
  record.updating = absl::Seconds(6);
  return report;
}

TEST(TrainingText, SaysWhatCameOfIt) {
  EXPECT_THAT(
      TrainingText(TwoEpochs()),
      HasSubstr("updates   6, 1 skipped: a loss or gradient was not finite\n"
                "loss      1.5 in the first epoch, 0.375 in epoch 2\n"
                "held out  loss 0.75, accuracy 0.9000 (9 of 10); before training: loss 2.5, "
                "accuracy 0.1000 (1 of 10)\n"
                "time      6.5s, 8 examples/s in updates\n"
                "written   trained.onnx\n"));
}

TEST(TrainingText, AStopIsSaid) {
  TrainingReport report = TwoEpochs();
  report.record.is_stopped = true;
  report.record.losses = {2, 1};
  report.record.epochs.clear();
  EXPECT_THAT(TrainingText(report), AllOf(HasSubstr("updates   2 of 6, then it was stopped\n"),
                                          HasSubstr("loss      1.5, mean of all updates\n"),
                                          HasSubstr("held out  loss 2.5, accuracy 0.1000")));
  report.record.losses.clear();
  report.written.clear();
  EXPECT_THAT(TrainingText(report), AllOf(HasSubstr("updates   0 of 6, then it was stopped\n"),
                                          HasSubstr("loss      -, mean"),
                                          HasSubstr("written   nothing: no update was made\n")));
}

TEST(TrainingText, ALossThatRoseIsAWarning) {
  TrainingReport report = TwoEpochs();
  EXPECT_THAT(TrainingWarnings(report.record), IsEmpty());
  EXPECT_THAT(TrainingText(report), Not(HasSubstr("warning")));
  report.record.epochs.back().loss = 1e8;
  EXPECT_THAT(TrainingText(report),
              HasSubstr("warning   the loss rose: it was 2 before the first update, and is 1e+08 "
                        "in the last epoch; a smaller --lr helps\n"));
  EXPECT_THAT(TrainingHtml(report), HasSubstr("<p class=bad>the loss rose"));
  EXPECT_THAT(TrainingJson(report), HasSubstr("the loss rose"));
  report = TwoEpochs();
  report.record.epochs.back().held_out->loss = 2.75;
  EXPECT_THAT(TrainingWarnings(report.record),
              ElementsAre(HasSubstr("larger than before training: 2.75, it was 2.5")));
  report.record.epochs.clear();
  EXPECT_THAT(TrainingWarnings(report.record), IsEmpty());
}

TEST(TrainingText, LastUpdatesThatWereSkippedAreAWarning) {
  TrainingReport report = TwoEpochs();
  report.record.losses.back() = kNan;
  EXPECT_THAT(TrainingWarnings(report.record),
              ElementsAre(HasSubstr("the last update of 6 was skipped")));
}

TEST(TrainingText, LossesWithoutRightAndWrongHaveNoAccuracy) {
  EXPECT_EQ(HeldOutText({.loss = 0.125}), "loss 0.125");
  EXPECT_EQ(EpochText({.epoch = 3, .loss = 0.5}), "epoch 3: loss 0.5");
  EXPECT_EQ(EpochText({.epoch = 3, .loss = kNan, .skipped = 2, .held_out = HeldOut{.loss = 1}}),
            "epoch 3: loss -, 2 skipped: a loss or gradient was not finite, held out: loss 1");
}

TEST(TrainingProgressText, CountsEpochsFromOneAndTellsWhatIsLeft) {
  TrainingRecord record = TwoEpochs().record;
  const struct {
    int64_t done;
    const char* text;
  } kCases[] = {{1, "epoch 1/2  update 1 of 6  loss 2  "},
                {3, "epoch 1/2  update 3 of 6  loss -  "},
                {4, "epoch 2/2  update 4 of 6  loss 0.5  "},
                {6, "epoch 2/2  update 6 of 6  loss 0.25  8 examples/s  0s left"}};
  for (const auto& one : kCases) {
    TrainingRecord so_far = record;
    so_far.losses.resize(one.done);
    EXPECT_THAT(TrainingProgressText(so_far, 2), HasSubstr(one.text));
  }
  record.losses.resize(2);
  record.elapsed = absl::Seconds(10);
  EXPECT_THAT(TrainingProgressText(record, 2), HasSubstr("8 examples/s  20s left"));
}

TEST(LossCurve, PartsHaveTheMeanOfTheirUpdates) {
  const TrainingRecord record = TwoEpochs().record;
  EXPECT_THAT(TrainedLosses(record, 2), ElementsAre(Pair(0.5, 1.5), Pair(1.5, 1.0 / 3)));
  EXPECT_THAT(TrainedLosses(record, 100),
              ElementsAre(Pair(0.5 / 3, 2), Pair(1.5 / 3, 1), Pair(3.5 / 3, 0.5),
                          Pair(4.5 / 3, 0.25), Pair(5.5 / 3, 0.25)))
      << "none of the skipped one";
  EXPECT_THAT(HeldOutLosses(record), ElementsAre(Pair(0, 2.5), Pair(1, 1.25), Pair(2, 0.75)));
  EXPECT_THAT(TrainedLosses({}, 10), IsEmpty());
}

TEST(LossCurve, TheChartHasBothCurvesWithinItsFrame) {
  const std::vector<std::string> lines = absl::StrSplit(LossChartText(TwoEpochs().record), '\n');
  ASSERT_EQ(lines.size(), 14);
  EXPECT_EQ(lines[0], "loss: * trained on, o held out");
  EXPECT_EQ(lines[1], "      2.5 |o");
  EXPECT_THAT(lines[10], AllOf(HasSubstr("     0.25 |"), HasSubstr("*")));
  EXPECT_THAT(lines[12], AllOf(HasSubstr("0 "), HasSubstr("2 epochs")));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 72) << line;
}

TEST(LossCurve, ALineThatDoesNotFallIsDrawnToo) {
  TrainingRecord record{.updates_of_epoch = 1, .losses = {1, 1, 1}};
  EXPECT_THAT(LossChartText(record), HasSubstr("loss: * trained on\n"));
  EXPECT_THAT(LossChartText(record), HasSubstr("*"));
  EXPECT_THAT(LossChartText(record), HasSubstr(" 3 epochs")) << "the end of the last update";
  record.losses = {kNan, 1};
  EXPECT_EQ(LossChartText(record), "") << "one point makes no line";
}

TEST(TrainingJson, HasEveryLossAndNullForThoseThatWereSkipped) {
  TrainingReport report = TwoEpochs();
  report.notes = {"a \xff note"};
  const nlohmann::json json = nlohmann::json::parse(TrainingJson(report));
  EXPECT_EQ(json["updates"], 6);
  EXPECT_EQ(json["skipped"], 1);
  EXPECT_EQ(json["stopped"], false);
  EXPECT_EQ(json["losses"].size(), 6);
  EXPECT_TRUE(json["losses"][2].is_null());
  EXPECT_EQ(json["epochs"][1]["held_out"]["accuracy"], 0.9);
  EXPECT_EQ(json["before"]["right"], 1);
  EXPECT_EQ(json["settings"]["--lr"], "0.05");
  EXPECT_EQ(json["written"], "trained.onnx");
  EXPECT_EQ(json["classes"].size(), 0);
  EXPECT_TRUE(json["failure"].is_null());
  report.record.before.reset();
  EXPECT_TRUE(nlohmann::json::parse(TrainingJson(report))["before"].is_null());
}

TEST(TrainingJson, HasClassesAndTheFailure) {
  TrainingReport report = TwoEpochs();
  report.classes = {"cat", "dog \xff"};
  report.written.clear();
  report.failure = absl::ResourceExhaustedError("no memory");
  const nlohmann::json json = nlohmann::json::parse(TrainingJson(report));
  ASSERT_EQ(json["classes"].size(), 2);
  EXPECT_EQ(json["classes"][0], "cat");
  EXPECT_EQ(json["failure"], "RESOURCE_EXHAUSTED: no memory");
  EXPECT_EQ(json["written"], "");
  EXPECT_EQ(json["losses"].size(), 6) << "of the updates before";
}

TEST(TrainingHtml, HasClassesAndTheFailure) {
  TrainingReport report = TwoEpochs();
  EXPECT_THAT(TrainingHtml(report), Not(HasSubstr("<h2>Classes</h2>")));
  report.classes = {"cat", "<dog>"};
  report.written.clear();
  report.failure = absl::ResourceExhaustedError("no <memory>");
  EXPECT_THAT(TrainingHtml(report),
              AllOf(HasSubstr("<p>6 updates, then it failed; nothing was written</p>\n"
                              "<p class=bad>RESOURCE_EXHAUSTED: no &lt;memory&gt;</p>"),
                    HasSubstr("<h2>Classes</h2>"), HasSubstr("<tr><td>1<td>&lt;dog&gt;</tr>")));
}

TEST(TrainingHtml, IsOnePageThatAsksForNothing) {
  TrainingReport report = TwoEpochs();
  report.model = "<b>&.onnx";
  report.written = "<i>.onnx";
  report.notes = {"<script>alert(1)</script>"};
  report.settings = {{"--only", "<u>*"}};
  report.parameters[0].name = "\"><img>";
  const std::string html = TrainingHtml(report);
  EXPECT_THAT(html, AllOf(HasSubstr("Training of &lt;b&gt;&amp;.onnx"), HasSubstr("&lt;i&gt;.onnx"),
                          HasSubstr("<li>&lt;script&gt;alert(1)&lt;/script&gt;</li>"),
                          HasSubstr("<td>&lt;u&gt;*"), HasSubstr("<td>&quot;&gt;&lt;img&gt;"),
                          HasSubstr("<polyline"), HasSubstr("Accuracy of what is held out")));
  EXPECT_THAT(html, HasSubstr("<tr><td>1<td>1.5<td>0.05<td>1<td>1.25<td>0.5000</tr>"));
  EXPECT_THAT(html, HasSubstr("<tr><td>before<td><td><td><td>2.5<td>0.1000</tr>"));
  EXPECT_THAT(html, HasSubstr("conv.weight<td>[8,3,3,3]<td>frozen"));
  for (const char* outside :
       {"http:", "https:", "src=", "href=", "url(", "@import", "<script", "<img", "<b>", "nan"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
}

TEST(TrainingHtml, ALongRunIsDrawnWithFewPoints) {
  TrainingReport report = TwoEpochs();
  report.record.losses.assign(100'000, 1.0);
  report.record.updates_of_epoch = 50'000;
  EXPECT_LT(TrainingHtml(report).size(), 20'000);
}

}  // namespace
}  // namespace tilewire::client
