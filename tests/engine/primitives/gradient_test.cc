// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/gradient_test.h"

#include <cmath>

#include "tests/support/padded_tail.h"

namespace tilewire::testing {
namespace {

using threading::Arena;
using threading::Team;

ProductOperands OfValues(const ByArgument& values) {
  const auto as_double = [&values](int arg) {
    const std::vector<float>& floats = values.at(arg);
    return std::vector<double>(floats.begin(), floats.end());
  };
  return {as_double(kArgSrc), as_double(kArgWeights), as_double(kArgDiffDst)};
}

// Buffers by argument: what is known packed, outputs that nothing reads filled with garbage.
std::map<int, Bytes> PackArguments(const Primitive& primitive, const ByArgument& values) {
  std::map<int, Bytes> buffers;
  for (const ArgDesc& entry : primitive.info().args) {
    const bool is_read = !entry.is_output || primitive.info().reads_destination;
    buffers[entry.arg] = is_read ? Pack(entry.desc, values.at(entry.arg)) : Garbage(entry.desc, 7);
  }
  return buffers;
}

std::map<int, Bytes> Run(const Primitive& primitive, std::map<int, Bytes> buffers,
                         const Team& team) {
  ExecuteArgs args;
  for (auto& [arg, bytes] : buffers) args.Set(arg, bytes.data());
  absl::StatusOr<AlignedBuffer> scratchpad =
      AlignedBuffer::Allocate(primitive.ScratchpadDesc().SizeBytes());
  EXPECT_THAT(scratchpad, IsOk());
  args.Set(kArgScratchpad, scratchpad->data());
  EXPECT_THAT(primitive.Execute(args, team), IsOk());
  return buffers;
}

}  // namespace

ByArgument RunGradient(const Created& primitive, const ByArgument& values) {
  static auto* const two = new Arena(2);
  static auto* const seven = new Arena(7);
  const std::map<int, Bytes> buffers = PackArguments(*primitive.library, values);
  const std::map<int, Bytes> serial = Run(*primitive.library, buffers, Team::Serial());
  EXPECT_TRUE(serial == Run(*primitive.user, buffers, Team::Serial())) << "in user mode";
  EXPECT_TRUE(serial == Run(*primitive.library, buffers, Team(two))) << "on two threads";
  EXPECT_TRUE(serial == Run(*primitive.user, buffers, Team(seven))) << "on seven threads";
  ByArgument outputs;
  for (const ArgDesc& entry : primitive.library->info().args) {
    const Bytes& after = serial.at(entry.arg);
    if (entry.is_output) {
      EXPECT_TRUE(PaddingIsZero(entry.desc, after.data())) << ArgName(entry.arg);
      outputs[entry.arg] = Unpack<float>(entry.desc, after);
    } else {
      EXPECT_TRUE(after == buffers.at(entry.arg)) << ArgName(entry.arg) << " was written";
    }
  }
  return outputs;
}

ByArgument RandomOperands(bool integers, int64_t src, int64_t weights, int64_t dst) {
  const auto make = [integers](int64_t count, uint64_t seed) {
    return integers ? RandomIntegers(count, seed) : RandomFloats(count, seed);
  };
  return {{kArgSrc, make(src, 1)}, {kArgWeights, make(weights, 2)}, {kArgDiffDst, make(dst, 3)}};
}

ExpectedGradient GradientOf(PropKind kind, const Products& products, const ByArgument& operands) {
  const ProductSums sums = SumsOf(products, OfValues(operands));
  ExpectedGradient expected;
  for (const ProductSum& sum : kind == PropKind::kBackwardData ? sums.src : sums.weights) {
    expected.values.push_back(sum.value);
    expected.bounds.push_back(sum.magnitude * (sum.count + 1) * 0x1p-24);
  }
  return expected;
}

ExpectedGradient GradientOfBias(const Dims& dst, const ByArgument& operands) {
  std::vector<double> diff_dst = OfValues(operands).diff_dst;
  ExpectedGradient expected{SumsOfChannels(dst, diff_dst), {}};
  for (double& value : diff_dst) value = std::abs(value);
  expected.bounds = SumsOfChannels(dst, diff_dst);
  const double count = static_cast<double>(diff_dst.size()) / static_cast<double>(dst[1]);
  for (double& bound : expected.bounds) bound *= (count + 1) * 0x1p-24;
  return expected;
}

void ExpectGradient(const ExpectedGradient& expected, const std::vector<float>& found, bool exact,
                    bool relative_to_all) {
  constexpr double kOfAll = 1e-5;
  ASSERT_EQ(found.size(), expected.values.size());
  double squares = 0;
  for (double value : expected.values) squares += value * value;
  const double all = std::sqrt(squares / std::max<size_t>(1, found.size()));
  for (size_t i = 0; i < found.size(); ++i) {
    const double bound = exact ? 0 : expected.bounds[i] + (relative_to_all ? kOfAll * all : 0);
    ASSERT_LE(std::abs(found[i] - expected.values[i]), bound)
        << "element " << i << " is " << found[i] << ", expected " << expected.values[i];
  }
}

}  // namespace tilewire::testing
