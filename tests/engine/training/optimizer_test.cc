// SPDX-License-Identifier: Apache-2.0
//
// 100 steps of each optimizer against torch 1.13 in double.
#include "engine/training/optimizer.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace tilewire::training {
namespace {

using Five = std::array<double, 5>;

// Element i of all is that of number i % 5: so many that there are several blocks, and a rest.
constexpr int64_t kElements = 16384 + 5 * 7 + 1;

struct OptimizerCase {
  const char* why;
  OptimizerSpec optimizer;
  double rate;
  double clip_norm;
  Five after;
};

constexpr auto kAdam = OptimizerSpec::Kind::kAdam;
constexpr auto kAdamW = OptimizerSpec::Kind::kAdamW;

std::vector<OptimizerCase> OptimizerCases() {
  return {
      {"plain", {}, 0.05, 0, {-0.775, 0.5625, -0.0625, -0.475, 0.75625}},
      {"decay",
       {.weight_decay = 0.1},
       0.05,
       0,
       {-0.4895841178, 0.3606003257, -0.0426943344, -0.2979726851, 0.4632292462}},
      {"momentum",
       {.momentum = 0.9, .weight_decay = 0.01},
       0.01,
       0,
       {-0.6427220371, 0.4941172599, -0.1045715143, -0.3578837492, 0.6781962702}},
      {"dampening",
       {.momentum = 0.9, .dampening = 0.3},
       0.01,
       0,
       {-0.6880829757, 0.5316037189, -0.1011639031, -0.4106481934, 0.733727461}},
      {"nesterov",
       {.momentum = 0.8, .nesterov = true, .weight_decay = 0.01},
       0.01,
       0,
       {-0.7071275897, 0.5105206502, -0.05791208663, -0.4316888727, 0.7163502547}},
      {"adam",
       {.kind = kAdam},
       0.01,
       0,
       {-0.7265119587, 0.5210714904, -0.04566644438, -0.4547065114, 0.7334932399}},
      {"adam with everything",
       {.kind = kAdam, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1},
       0.01,
       0,
       {-0.6276061216, 0.4463175419, -0.03234489978, -0.3970617826, 0.628399002}},
      {"adamw",
       {.kind = kAdamW, .weight_decay = 0.1},
       0.01,
       0,
       {-0.6573242537, 0.4717765635, -0.04175305371, -0.4111066452, 0.6637238447}},
      {"clipped by the norm of five elements",
       {},
       0.05,
       0.75,
       {-0.7910301583, 0.5361573012, -0.03439525678, -0.4866832234, 0.7797210425}},
  };
}

float GradientOf(int64_t i, int64_t t) { return static_cast<float>((i * 7 + t * 13) % 17 - 8) / 8; }

// The parameter after 100 steps from step 1 on.
std::vector<float> After(const OptimizerCase& one, int64_t elements, const threading::Team& team) {
  std::vector<float> w(elements), g(elements), states[2];
  for (int i = 0; i < StateCount(one.optimizer); ++i) states[i].resize(elements);
  for (int64_t i = 0; i < elements; ++i) w[i] = static_cast<float>(i % 5 * 5 % 7 - 3) / 4;
  for (int64_t t = 0; t < 100; ++t) {
    for (int64_t i = 0; i < elements; ++i) g[i] = GradientOf(i % 5, t);
    const absl::Span<const float> five = absl::MakeConstSpan(g).first(5);
    const GradientBounds bounds =
        BoundsOf({five}, NormOf({five}, INFINITY, team), 0, one.clip_norm, team);
    const OptimizedParameter parameter{absl::MakeSpan(w),
                                       g,
                                       {absl::MakeSpan(states[0]), absl::MakeSpan(states[1])},
                                       one.rate,
                                       one.optimizer.weight_decay};
    TakeStep(one.optimizer, t + 1, {parameter}, bounds, team);
  }
  return w;
}

TEST(OptimizerTest, AHundredStepsAreTorchs) {
  for (const OptimizerCase& one : OptimizerCases()) {
    SCOPED_TRACE(one.why);
    const std::vector<float> w = After(one, 5, threading::Team::Serial());
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(w[i], one.after[i], 1e-6) << i;
  }
}

TEST(OptimizerTest, BlocksAndThreadsChangeNoBit) {
  threading::Arena two(2), seven(7);
  for (const OptimizerCase& one : OptimizerCases()) {
    SCOPED_TRACE(one.why);
    const std::vector<float> few = After(one, 5, threading::Team::Serial());
    for (const threading::Team& team :
         {threading::Team::Serial(), threading::Team(&two), threading::Team(&seven)}) {
      const std::vector<float> many = After(one, kElements, team);
      for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(many[i], few[i % 5]) << i;
    }
  }
}

TEST(OptimizerTest, PaddingStaysZero) {
  for (OptimizerCase one : OptimizerCases()) {
    std::vector<float> w(40, 0), g(40, 0), first(40, 0), second(40, 0);
    const OptimizedParameter parameter{absl::MakeSpan(w),
                                       g,
                                       {absl::MakeSpan(first), absl::MakeSpan(second)},
                                       one.rate,
                                       one.optimizer.weight_decay};
    for (int64_t t = 1; t < 5; ++t)
      TakeStep(one.optimizer, t, {parameter}, GradientBounds(), threading::Team::Serial());
    for (const std::vector<float>& all : {w, first, second})
      EXPECT_EQ(all, std::vector<float>(40, 0)) << one.why;
  }
}

TEST(OptimizerTest, ParametersHaveRatesOfTheirOwn) {
  std::vector<float> a = {1}, b = {1};
  const std::vector<float> g = {2};
  const OptimizedParameter parameters[] = {{absl::MakeSpan(a), g, {}, 0.25, 0},
                                           {absl::MakeSpan(b), g, {}, 0.5, 0.5}};
  TakeStep({}, 1, parameters, {.scale = 0.5f}, threading::Team::Serial());
  EXPECT_EQ(a[0], 0.75f);
  EXPECT_EQ(b[0], 0.25f);
}

TEST(GradientNormTest, IsOfAllGradientsTogether) {
  const std::vector<float> a = {3, 0}, b = {0, -4, 12};
  const absl::Span<const float> both[] = {a, b};
  const threading::Team team = threading::Team::Serial();
  EXPECT_EQ(NormOf(both, INFINITY, team), 13);
  EXPECT_EQ(NormOf(both, 4, team), std::sqrt(9.0 + 16 + 16));
  EXPECT_EQ(NormOf({}, INFINITY, team), 0);
  const GradientBounds bounds = BoundsOf(both, 13, /*clip_value=*/4, /*clip_norm=*/2, team);
  EXPECT_EQ(bounds.value, 4);
  EXPECT_EQ(bounds.scale, static_cast<float>(2 / (std::sqrt(41.0) + 1e-6)));
  EXPECT_EQ(bounds(-12), -4 * bounds.scale);
  EXPECT_EQ(BoundsOf(both, 13, 0, 14, team).scale, 1);
}

TEST(GradientNormTest, OneBadElementShowsWhereverItIs) {
  std::vector<float> g(kElements, 1e30f);
  const threading::Team team = threading::Team::Serial();
  EXPECT_TRUE(std::isfinite(NormOf({g}, INFINITY, team)));
  for (int64_t place : {int64_t{0}, int64_t{16384}, kElements - 1}) {
    for (float bad : {INFINITY, -INFINITY, NAN}) {
      const float before = g[place];
      g[place] = bad;
      EXPECT_FALSE(std::isfinite(NormOf({g}, INFINITY, team))) << place << " " << bad;
      g[place] = before;
    }
  }
}

TEST(GradientNormTest, ThreadsChangeNoBit) {
  std::vector<float> g(kElements);
  for (int64_t i = 0; i < kElements; ++i) g[i] = GradientOf(i, i / 3) * 0.37f;
  threading::Arena seven(7);
  const absl::Span<const float> all[] = {g, absl::MakeConstSpan(g).subspan(100, 20000)};
  EXPECT_EQ(NormOf(all, 0.2f, threading::Team::Serial()),
            NormOf(all, 0.2f, threading::Team(&seven)));
}

}  // namespace
}  // namespace tilewire::training
