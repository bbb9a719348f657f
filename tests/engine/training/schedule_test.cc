// SPDX-License-Identifier: Apache-2.0
#include "engine/training/schedule.h"

#include <cmath>
#include <cstdint>

#include "engine/training/name_pattern.h"
#include "engine/training/spec_check.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace tilewire::training {
namespace {

using testing::IsOk;
using testing::StatusIs;
using Kind = ScheduleSpec::Kind;

TEST(ScheduleTest, RatesOfUpdates) {
  struct Expectation {
    const char* why;
    ScheduleSpec schedule;
    int64_t update;
    double rate;
  };
  const ScheduleSpec warm = {.rate = 0.4, .warm_up = 4};
  const ScheduleSpec steps = {.kind = Kind::kSteps, .rate = 0.5, .every = 10, .factor = 0.5};
  const ScheduleSpec cosine = {.kind = Kind::kCosine, .rate = 1, .updates = 8, .least = 0.5};
  const ScheduleSpec power = {.kind = Kind::kPolynomial, .rate = 1, .updates = 4, .power = 2};
  ScheduleSpec late = power;
  late.warm_up = 10;
  for (const Expectation& one : {
           Expectation{"constant", {.rate = 0.3}, 12345, 0.3},
           Expectation{"the first of the warm-up", warm, 0, 0.1},
           Expectation{"the last of the warm-up", warm, 3, 0.4},
           Expectation{"after the warm-up", warm, 4, 0.4},
           Expectation{"before the first step", steps, 9, 0.5},
           Expectation{"at the first step", steps, 10, 0.25},
           Expectation{"after three", steps, 39, 0.0625},
           Expectation{"where the cosine begins", cosine, 0, 1},
           Expectation{"half-way", cosine, 4, 0.75},
           Expectation{"where it ends", cosine, 8, 0.5},
           Expectation{"and there it stays", cosine, 100, 0.5},
           Expectation{"polynomial", power, 1, 0.5625},
           Expectation{"its end", power, 9, 0},
           Expectation{"counted from the end of the warm-up", late, 11, 0.5625},
       }) {
    EXPECT_DOUBLE_EQ(RateOf(one.schedule, one.update), one.rate) << one.why;
  }
}

TEST(NamePatternTest, StarsStandForAnything) {
  struct Expectation {
    const char *name, *pattern;
    bool matches;
  };
  for (const Expectation& one : {
           Expectation{"fc.weight", "fc.weight", true},
           Expectation{"fc.weight", "fc", false},
           Expectation{"fc.weight", "fc*", true},
           Expectation{"fc.weight", "*weight", true},
           Expectation{"fc.weight", "*bias", false},
           Expectation{"layer1.0.conv1.weight", "layer*.conv*", true},
           Expectation{"abab.c", "*ab.*", true},
           Expectation{"", "*", true},
           Expectation{"", "", true},
           Expectation{"a", "", false},
           Expectation{"a", "**", true},
           Expectation{"aaab", "a*b*c", false},
       }) {
    EXPECT_EQ(MatchesPattern(one.name, one.pattern), one.matches) << one.name << " " << one.pattern;
  }
}

TEST(SpecCheckTest, SettingsBelongToTheirLosses) {
  using Kind = LossSpec::Kind;
  const auto status = [](const LossSpec& loss) {
    TrainingSpec spec;
    spec.losses = {loss};
    return CheckSpec(spec);
  };
  const auto is = [](const char* message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, message);
  };
  for (Kind kind : {Kind::kSoftmaxCrossEntropy, Kind::kBinaryCrossEntropy})
    EXPECT_THAT(status({.kind = kind, .class_weights = {1, 2}}), IsOk());
  EXPECT_THAT(status({.label_smoothing = 0.1, .ignore_index = 1}), IsOk());
  EXPECT_THAT(status({.kind = Kind::kMeanSquaredError, .class_weights = {1, 2}}),
              is("losses[0]: class_weights: mean_squared_error has none; softmax_cross_entropy "
                 "and binary_cross_entropy have"));
  EXPECT_THAT(status({.kind = Kind::kHuber, .class_weights = {1, 2}}),
              is("losses[0]: class_weights: huber has none"));
  EXPECT_THAT(status({.kind = Kind::kHuber, .ignore_index = 1}),
              is("losses[0]: ignore_index: huber has no labels"));
  EXPECT_THAT(status({.kind = Kind::kBinaryCrossEntropy, .ignore_index = 1}),
              is("losses[0]: ignore_index: binary_cross_entropy has no labels"));
  EXPECT_THAT(status({.kind = Kind::kBinaryCrossEntropy, .label_smoothing = 0.1}),
              is("losses[0]: label_smoothing: binary_cross_entropy has none"));
}

TEST(SpecCheckTest, NumbersOutOfRangeAreNamed) {
  TrainingSpec good;
  good.losses = {LossSpec()};
  EXPECT_THAT(CheckSpec(good), IsOk());
  const auto refused = [&](const char* message, void (*change)(TrainingSpec&)) {
    TrainingSpec spec = good;
    change(spec);
    EXPECT_THAT(CheckSpec(spec), StatusIs(absl::StatusCode::kInvalidArgument, message));
  };
  refused("losses: there are none", [](TrainingSpec& s) { s.losses.clear(); });
  refused("losses[0]: factor: 0; allowed: positive",
          [](TrainingSpec& s) { s.losses[0].factor = 0; });
  refused("losses[0]: delta: -1", [](TrainingSpec& s) { s.losses[0].delta = -1; });
  refused("losses[0]: label_smoothing: 1; allowed: 0 to below 1",
          [](TrainingSpec& s) { s.losses[0].label_smoothing = 1; });
  refused("losses[0]: class_weights[1]: -2", [](TrainingSpec& s) {
    s.losses[0].class_weights = {1, -2};
  });
  refused("losses[0]: class_weights: all are 0", [](TrainingSpec& s) {
    s.losses[0].class_weights = {0, 0};
  });
  refused("optimizer: momentum: -0.5", [](TrainingSpec& s) { s.optimizer.momentum = -0.5; });
  refused("optimizer: dampening", [](TrainingSpec& s) { s.optimizer.dampening = -1; });
  refused("optimizer: beta1: 1", [](TrainingSpec& s) { s.optimizer.beta1 = 1; });
  refused("optimizer: beta2: nan", [](TrainingSpec& s) { s.optimizer.beta2 = NAN; });
  refused("optimizer: epsilon: 0", [](TrainingSpec& s) { s.optimizer.epsilon = 0; });
  refused("optimizer: epsilon: 1e-40", [](TrainingSpec& s) { s.optimizer.epsilon = 1e-40; });
  refused("optimizer: weight_decay", [](TrainingSpec& s) { s.optimizer.weight_decay = -1; });
  refused("optimizer: nesterov needs a momentum",
          [](TrainingSpec& s) { s.optimizer.nesterov = true; });
  refused("schedule: rate: inf", [](TrainingSpec& s) { s.schedule.rate = INFINITY; });
  refused("schedule: warm_up: -1; allowed: 0 and more",
          [](TrainingSpec& s) { s.schedule.warm_up = -1; });
  refused("schedule: every: 0", [](TrainingSpec& s) { s.schedule.every = 0; });
  refused("schedule: updates: 0", [](TrainingSpec& s) { s.schedule.updates = 0; });
  refused("schedule: factor", [](TrainingSpec& s) { s.schedule.factor = -0.1; });
  refused("schedule: power: 0", [](TrainingSpec& s) { s.schedule.power = 0; });
  refused("schedule: least: 0.5; allowed: 0 to the rate, 0.01",
          [](TrainingSpec& s) { s.schedule.least = 0.5; });
  refused("clip_value: -1", [](TrainingSpec& s) { s.clip_value = -1; });
  refused("clip_norm: nan", [](TrainingSpec& s) { s.clip_norm = NAN; });
  refused("group 'fc*': rate_factor: -1", [](TrainingSpec& s) { s.groups = {{"fc*", -1}}; });
  refused("group 'fc*': weight_decay: -1", [](TrainingSpec& s) { s.groups = {{"fc*", 1, -1}}; });
}

}  // namespace
}  // namespace tilewire::training
