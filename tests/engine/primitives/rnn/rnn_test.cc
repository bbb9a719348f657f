// SPDX-License-Identifier: Apache-2.0
//
// Every row of rnn's table against the formula in double precision.
#include "engine/primitives/rnn/rnn.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/engine/primitives/row_test.h"
#include "tests/support/rnn_formula.h"

namespace tilewire::testing {
namespace {

constexpr double kUnit = 0x1p-24;  // the rounding of one operation

// A number, and how far from it one that was computed in f32 may be.
struct Bounded {
  Bounded() = default;
  explicit Bounded(double value) : value(value) {}
  Bounded(double value, double error) : value(value), error(error) {}
  double value = 0, error = 0;
};

Bounded operator+(const Bounded& a, const Bounded& b) {
  const double value = a.value + b.value;
  return {value, a.error + b.error + kUnit * (std::abs(a.value) + std::abs(b.value))};
}
Bounded operator-(const Bounded& a, const Bounded& b) { return a + Bounded(-b.value, b.error); }
Bounded operator*(const Bounded& a, const Bounded& b) {
  const double value = a.value * b.value;
  return {value, std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error +
                     kUnit * std::abs(value)};
}

// In any order: each addition rounds a sum that is at most that of the magnitudes.
Bounded SumOf(const std::vector<Bounded>& terms) {
  double value = 0, error = 0, magnitude = 0;
  for (const Bounded& term : terms) {
    value += term.value;
    error += term.error;
    magnitude += std::abs(term.value);
  }
  return {value, error + static_cast<double>(terms.size()) * kUnit * magnitude};
}

// The steepest that a function is.
double SlopeOf(const RnnActivation& activation) {
  switch (activation.function) {
    case EltwiseAlgorithm::kScaledTanh:
      return std::abs(activation.alpha * activation.beta);
    case EltwiseAlgorithm::kThresholdedRelu:
      return 1;
    case EltwiseAlgorithm::kLogistic:
      return 0.25;
    case EltwiseAlgorithm::kLinear:
    case EltwiseAlgorithm::kHardSigmoid:
      return std::abs(activation.alpha);
    default:
      return std::max<double>(1.2, std::abs(activation.alpha));
  }
}

// The function with its error: the argument is rounded once; the function itself has 4 units in the
// last place, or of 1 where it is a difference from 1 inside.
Bounded FunctionOf(const RnnActivation& activation, double clip, const Bounded& x) {
  double argument = x.value;
  if (clip > 0) argument = std::clamp(argument, -clip, clip);
  const double value = functions::EltwiseScalar(activation, static_cast<float>(argument));
  const double slope = SlopeOf(activation);
  const double passed_on = slope * (x.error + 2 * kUnit * std::abs(argument));
  return {value, passed_on + 8 * kUnit * (std::abs(value) + slope)};
}

struct Case {
  const char* why;
  RnnCell cell;
  RnnDirection direction;
  int64_t steps, sequences, inputs, states;
  bool bias = true, iter = false, lengths = false, peephole = false, couples = false;
  double clip = 0;
  std::vector<RnnActivation> activations = {};
};

constexpr RnnActivation kSigmoid = {EltwiseAlgorithm::kLogistic}, kTanh = {EltwiseAlgorithm::kTanh};

std::vector<RnnActivation> UsualActivations(RnnCell cell) {
  if (cell == RnnCell::kVanillaRnn) return {kTanh};
  if (cell == RnnCell::kLstm) return {kSigmoid, kTanh, kTanh};
  return {kSigmoid, kTanh};
}

RnnProblem ProblemOf(const Case& one) {
  RnnProblem problem{one.cell,  one.direction, one.activations, one.clip,  one.couples,
                     one.steps, one.sequences, one.inputs,      one.states};
  if (problem.activations.empty()) problem.activations = UsualActivations(one.cell);
  const size_t each = problem.activations.size();
  if (functions::DirectionsOf(one.direction) == 2) {
    for (size_t i = 0; i < each; ++i) problem.activations.push_back(problem.activations[i]);
  }
  return problem;
}

// The descriptor's tensors in row-major order, weights as the row wants them.
RnnDesc DescOf(const Case& one) {
  const RnnProblem problem = ProblemOf(one);
  const int64_t directions = functions::DirectionsOf(one.direction),
                gates = functions::GatesOf(one.cell);
  RnnDesc desc;
  desc.cell = one.cell;
  desc.direction = one.direction;
  desc.activations = problem.activations;
  desc.clip = static_cast<float>(one.clip);
  desc.couples_gates = one.couples;
  const auto any = [](const Dims& dims) {
    return MemoryDesc::CreateAny(dims, DataType::kF32).value();
  };
  desc.src_layer = Plain({one.steps, one.sequences, one.inputs});
  desc.dst_layer =
      Plain({one.steps, one.sequences, one.states * functions::StatesPerResult(one.direction)});
  desc.weights_layer = any({1, directions, one.inputs, gates, one.states});
  desc.weights_iter = any({1, directions, one.states, gates, one.states});
  if (one.bias) desc.bias = any({1, directions, functions::BiasGatesOf(one.cell), one.states});
  if (one.peephole) desc.weights_peephole = any({1, directions, 3, one.states});
  if (one.lengths) desc.sequence_lengths = Plain({one.sequences}, DataType::kS32);
  const MemoryDesc state = Plain({1, directions, one.sequences, one.states});
  if (one.iter) desc.src_iter = desc.dst_iter = state;
  if (one.iter && one.cell == RnnCell::kLstm) desc.src_iter_c = desc.dst_iter_c = state;
  return desc;
}

// The numbers of a case: those of a sequence do not depend on how many sequences there are.
struct Numbers {
  explicit Numbers(const Case& one) {
    const int64_t directions = functions::DirectionsOf(one.direction),
                  gates = functions::GatesOf(one.cell);
    const int64_t states = one.states, of_states = directions * one.sequences * states;
    layer = RandomFloats(one.steps * one.sequences * one.inputs, 1);
    weights_layer = RandomFloats(directions * one.inputs * gates * states, 2, -0.5f, 0.5f);
    // The error of a state may not grow from step to step.
    const float most = 1.0f / static_cast<float>(states);
    weights_iter = RandomFloats(directions * states * gates * states, 3, -most, most);
    if (one.bias) bias = RandomFloats(directions * functions::BiasGatesOf(one.cell) * states, 4);
    if (one.peephole) peephole = RandomFloats(directions * 3 * states, 5);
    if (one.iter) iter = RandomFloats(of_states, 6);
    if (one.iter && one.cell == RnnCell::kLstm) iter_c = RandomFloats(of_states, 7);
    for (int64_t n = 0; one.lengths && n < one.sequences; ++n)
      lengths.push_back(static_cast<int32_t>((n * 3 + 2) % (one.steps + 1)));
  }

  RnnSources<Bounded> Sources() const {
    const auto exact = [](const std::vector<float>& from) {
      return std::vector<Bounded>(from.begin(), from.end());
    };
    return {exact(layer),        exact(iter),     exact(iter_c), exact(weights_layer),
            exact(weights_iter), exact(peephole), exact(bias),   {lengths.begin(), lengths.end()}};
  }

  std::vector<float> layer, iter, iter_c, weights_layer, weights_iter, peephole, bias;
  std::vector<int32_t> lengths;
};

class RnnTest : public RowTest<RnnDesc> {
 protected:
  RnnTest() : RowTest(CreateRnn) {}

  struct Result {
    std::vector<float> layer, iter, iter_c;
  };

  std::optional<Result> Run(const RnnDesc& wanted, const Numbers& numbers) {
    const auto primitive = Create(wanted);
    if (!primitive) return std::nullopt;
    std::vector<std::pair<int, Bytes>> packed;
    const auto add = [&](int arg, const auto& values) {
      if (!primitive->Desc(arg).IsZero())
        packed.emplace_back(arg, Pack(primitive->Desc(arg), values));
    };
    add(kArgSrc, numbers.layer);
    add(kArgSrcIter, numbers.iter);
    add(kArgSrcIterC, numbers.iter_c);
    add(kArgWeights, numbers.weights_layer);
    add(kArgWeightsIter, numbers.weights_iter);
    add(kArgWeightsPeephole, numbers.peephole);
    add(kArgBias, numbers.bias);
    add(kArgSequenceLengths, numbers.lengths);
    const size_t sources = packed.size();
    for (int arg : {kArgDst, kArgDstIter, kArgDstIterC}) {
      const MemoryDesc& desc = primitive->Desc(arg);
      if (!desc.IsZero()) packed.emplace_back(arg, Garbage(desc, 9));
    }
    Inputs all;
    for (const auto& [arg, bytes] : packed) all.emplace_back(arg, &bytes);
    std::vector<float> results[3];
    for (size_t i = sources; i < packed.size(); ++i) {  // each result once as the one looked at
      const MemoryDesc& desc = primitive->Desc(packed[i].first);
      results[i - sources] =
          Unpack<float>(desc, ExecuteAllWays(*primitive, all, packed[i].first, Garbage(desc, 9)));
    }
    return Result{results[0], results[1], results[2]};
  }

  static void ExpectWithin(const std::vector<float>& got, const std::vector<Bounded>& want,
                           const char* what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i].value, want[i].error) << what << " " << i;
  }

  void ExpectFormula(const Case& one) { ExpectFormula(one, DescOf(one)); }
  void ExpectFormula(const Case& one, const RnnDesc& desc) {
    SCOPED_TRACE(one.why);
    const Numbers numbers(one);
    const auto result = Run(desc, numbers);
    if (!result) return;
    const RnnProblem problem = ProblemOf(one);
    const RnnSources<Bounded> sources = numbers.Sources();
    const auto want = RnnFormula<Bounded>(problem, sources).Run();
    ExpectWithin(result->layer, want.layer, "dst_layer");
    if (one.iter) ExpectWithin(result->iter, want.iter, "dst_iter");
    if (!result->iter_c.empty()) ExpectWithin(result->iter_c, want.iter_c, "dst_iter_c");
  }
};

constexpr RnnCell kCells[] = {RnnCell::kVanillaRnn, RnnCell::kLstm, RnnCell::kGru,
                              RnnCell::kLbrGru};
constexpr RnnDirection kDirections[] = {RnnDirection::kLeftToRight, RnnDirection::kRightToLeft,
                                        RnnDirection::kBidirectionalConcat,
                                        RnnDirection::kBidirectionalSum};

TEST_P(RnnTest, EveryCellAndDirection) {
  for (RnnCell cell : kCells) {
    for (RnnDirection direction : kDirections) {
      ExpectFormula({"from zeros", cell, direction, 4, 3, 10, 20});
      ExpectFormula({"one step of one sequence", cell, direction, 1, 1, 1, 1});
      ExpectFormula({"from a state, without bias", cell, direction, 5, 2, 7, 17, false, true});
      ExpectFormula(
          {"sequences of their own lengths", cell, direction, 6, 7, 5, 9, true, true, true});
    }
  }
}

// Around the blocks of 8 and 16 states, and the tiles of several blocks.
TEST_P(RnnTest, EverySizeOfAState) {
  for (int64_t states : {2, 7, 8, 15, 16, 24, 31, 33, 48, 64, 65, 80, 130}) {
    for (RnnCell cell : kCells)
      ExpectFormula({"sizes", cell, RnnDirection::kLeftToRight, 3, 2, 1 + states % 5, states});
  }
}

TEST_P(RnnTest, EveryCountOfSequencesAndSteps) {
  for (int64_t sequences : {1, 2, 3, 4, 5, 8, 13, 26}) {
    ExpectFormula({"sequences", RnnCell::kLstm, RnnDirection::kBidirectionalConcat, 3, sequences, 6,
                   12, true, true});
  }
  ExpectFormula({"more rows than a block", RnnCell::kGru, RnnDirection::kBidirectionalConcat, 90, 7,
                 3, 5, true, true, true});
  ExpectFormula({"no steps", RnnCell::kLstm, RnnDirection::kLeftToRight, 0, 2, 3, 5, true, true});
  ExpectFormula({"no sequences", RnnCell::kLstm, RnnDirection::kLeftToRight, 2, 0, 3, 5});
}

TEST_P(RnnTest, PeepholesClipsAndCoupledGates) {
  for (RnnDirection direction : kDirections) {
    for (bool couples : {false, true}) {
      ExpectFormula(
          {"peepholes", RnnCell::kLstm, direction, 5, 3, 4, 19, true, true, false, true, couples});
      ExpectFormula({"peepholes and clip", RnnCell::kLstm, direction, 5, 3, 4, 19, true, true,
                     false, true, couples, 0.3});
    }
    for (RnnCell cell : kCells)
      ExpectFormula({"clip", cell, direction, 5, 3, 4, 19, true, false, false, false, false, 0.25});
  }
}

TEST_P(RnnTest, EveryFunction) {
  const std::vector<RnnActivation> functions = {{EltwiseAlgorithm::kRelu},
                                                {EltwiseAlgorithm::kRelu, 0.1f},
                                                {EltwiseAlgorithm::kLinear, 0.5f, 0.25f},
                                                {EltwiseAlgorithm::kHardSigmoid, 0.2f, 0.5f},
                                                {EltwiseAlgorithm::kElu, 0.7f},
                                                {EltwiseAlgorithm::kSoftRelu},
                                                {EltwiseAlgorithm::kScaledTanh, 1.7f, 0.6f},
                                                {EltwiseAlgorithm::kSoftsign},
                                                {EltwiseAlgorithm::kErf},
                                                {EltwiseAlgorithm::kSelu, 1.6732632f, 1.050701f},
                                                {EltwiseAlgorithm::kCelu, 1},
                                                {EltwiseAlgorithm::kGeluErf},
                                                {EltwiseAlgorithm::kMish},
                                                // Where a threshold is near, rounding decides.
                                                {EltwiseAlgorithm::kThresholdedRelu, -100},
                                                {EltwiseAlgorithm::kThresholdedRelu, 100}};
  for (const RnnActivation& function : functions) {
    for (RnnCell cell : kCells) {
      std::vector<RnnActivation> activations = UsualActivations(cell);
      activations.back() = function;
      Case one{"another function", cell, RnnDirection::kLeftToRight, 4, 2, 5, 11, true, true};
      one.activations = activations;
      ExpectFormula(one);
      // As a gate it may not let the state grow.
      if (cell == RnnCell::kVanillaRnn || function.function == EltwiseAlgorithm::kSoftRelu)
        continue;
      one.activations[0] = {EltwiseAlgorithm::kHardSigmoid, 0.3f, 0.4f};
      ExpectFormula(one);
    }
  }
}

// ntc: the steps of a sequence are neighbours; ldgoi: a weight's inputs are.
TEST_P(RnnTest, OtherLayouts) {
  const auto nested = [](const Dims& dims, absl::string_view pattern) {
    return MemoryDesc::CreatePattern(dims, DataType::kF32, pattern).value();
  };
  for (RnnCell cell : kCells) {
    const Case one{"ntc", cell, RnnDirection::kBidirectionalConcat, 5, 3, 6, 18, true, true};
    RnnDesc desc = DescOf(one);
    desc.src_layer = nested(desc.src_layer.dims(), "bac");
    ExpectFormula(one, desc);
    desc.dst_layer = nested(desc.dst_layer.dims(), "bac");
    ExpectFormula(one, desc);
    desc.src_layer = nested(desc.src_layer.dims(), "cba");
    ExpectFormula(one, desc);
    desc = DescOf(one);
    desc.src_iter = desc.dst_iter = nested(desc.src_iter.dims(), "acbd");
    ExpectFormula(one, desc);
    desc.weights_layer = nested(desc.weights_layer.dims(), "abdec");
    desc.weights_iter = nested(desc.weights_iter.dims(), "abdec");
    ExpectFormula(one, desc);
  }
}

// The bits of a sequence are the same alone and among others.
TEST_P(RnnTest, SequencesDoNotDependOnTheOthers) {
  for (RnnCell cell : kCells) {
    const Case all{"all", cell, RnnDirection::kBidirectionalConcat, 5, 11, 6, 20};
    Case one = all;
    one.sequences = 1;
    const Numbers numbers(all);
    const auto together = Run(DescOf(all), numbers);
    ASSERT_TRUE(together);
    for (int64_t n = 0; n < all.sequences; ++n) {
      Numbers own(one);
      std::vector<float> want;
      for (int64_t t = 0; t < all.steps; ++t) {
        const float* x = &numbers.layer[(t * all.sequences + n) * all.inputs];
        std::copy_n(x, all.inputs, &own.layer[t * all.inputs]);
        const float* h = &together->layer[(t * all.sequences + n) * 2 * all.states];
        want.insert(want.end(), h, h + 2 * all.states);
      }
      const auto alone = Run(DescOf(one), own);
      ASSERT_TRUE(alone);
      EXPECT_EQ(BitsOf(alone->layer), BitsOf(want)) << "sequence " << n;
    }
  }
}

TILEWIRE_TEST_EVERY_ROW(Rnn);

TEST(RnnActivationTest, AThresholdKeepsWhatIsAboveIt) {
  const RnnActivation above = {EltwiseAlgorithm::kThresholdedRelu, 0.5f};
  EXPECT_EQ(functions::EltwiseScalar(above, 0.5f), 0);
  EXPECT_EQ(functions::EltwiseScalar(above, 0.75f), 0.75f);
  EXPECT_EQ(functions::EltwiseScalar(above, -3), 0);
}

TEST(RnnErrorsTest, CreationNamesWhatDoesNotFit) {
  const RnnDesc good =
      DescOf({"good", RnnCell::kGru, RnnDirection::kLeftToRight, 3, 2, 4, 5, true, true, true});
  const auto status = StatusOfCreating(CreateRnn);
  EXPECT_THAT(status(good), IsOk());
  const auto with = [&](auto change) {
    RnnDesc desc = good;
    change(desc);
    return status(desc);
  };
  EXPECT_THAT(with([](RnnDesc& desc) {
                desc.src_layer = Plain({3, 2});
              }),
              StatusIs(kInvalid, "ranks"));
  EXPECT_THAT(with([](RnnDesc& desc) {
                desc.dst_layer = Plain({3, 2, 6});
              }),
              StatusIs(kInvalid, "dst_layer"));
  EXPECT_THAT(with([](RnnDesc& desc) {
                desc.weights_iter = Plain({1, 1, 5, 4, 5});
              }),
              StatusIs(kInvalid, "weights_iter"));
  EXPECT_THAT(with([](RnnDesc& desc) {
                desc.bias = Plain({1, 1, 4, 5});
              }),
              StatusIs(kInvalid, "bias"));
  EXPECT_THAT(with([](RnnDesc& desc) {
                desc.src_iter = Plain({1, 2, 2, 5});
              }),
              StatusIs(kInvalid, "src_iter"));
  EXPECT_THAT(with([](RnnDesc& desc) {
                desc.src_iter_c = Plain({1, 1, 2, 5});
              }),
              StatusIs(kInvalid, "lstm"));
  EXPECT_THAT(with([](RnnDesc& desc) { desc.activations.pop_back(); }),
              StatusIs(kInvalid, "activations"));
  EXPECT_THAT(with([](RnnDesc& desc) { desc.clip = -1; }), StatusIs(kInvalid, "clip"));
  EXPECT_THAT(with([](RnnDesc& desc) { desc.prop_kind = PropKind::kForwardTraining; }),
              StatusIs(kUnimplemented, "inference"));
  EXPECT_THAT(with([](RnnDesc& desc) {
                desc.weights_layer = Plain({2, 1, 4, 3, 5});
                desc.weights_iter = Plain({2, 1, 5, 3, 5});
              }),
              StatusIs(kUnimplemented, "one layer"));
}

TEST(RnnErrorsTest, ALengthBeyondTheStepsFailsTheRun) {
  const Case one{"lengths", RnnCell::kGru, RnnDirection::kLeftToRight, 3, 2, 4, 5, false,
                 false,     true};
  const auto primitive = CreateRnn(DescOf(one), {}, {});
  ASSERT_THAT(primitive, IsOk());
  for (const std::vector<int32_t>& lengths : {std::vector<int32_t>{3, 4}, {-1, 2}}) {
    std::vector<Bytes> buffers;
    ExecuteArgs args;
    for (const ArgDesc& arg : (*primitive)->info().args) {
      buffers.emplace_back(arg.desc.SizeBytes());
      if (arg.arg == kArgSequenceLengths) buffers.back() = Pack(arg.desc, lengths);
      args.Set(arg.arg, buffers.back().data());
    }
    EXPECT_THAT((*primitive)->Execute(args, threading::Team::Serial()),
                StatusIs(kInvalid, "of 3 steps"));
  }
}

}  // namespace
}  // namespace tilewire::testing
