// SPDX-License-Identifier: Apache-2.0
//
// Tests of rows that compute gradients of sums of products, against the oracle's. A case is a
// forward descriptor and its products; its two gradients are computed
//
//   on small integers      exactly
//   on random numbers      within K 2^-24 of the sum of the magnitudes of K products; of primitives
//                          whose bits depend on the position, as Winograd's, within 1e-5 of the
//                          root mean square of the gradient
//
// and have the same bits on 1, 2 and 7 threads, in both scratchpad modes. Outputs hold garbage
// before, and their padded tails are zero afterwards.
#ifndef TESTS_ENGINE_PRIMITIVES_GRADIENT_TEST_H_
#define TESTS_ENGINE_PRIMITIVES_GRADIENT_TEST_H_

#include <limits>
#include <map>
#include <vector>

#include "engine/kernels/attributes.h"
#include "engine/primitives/row_runs.h"
#include "tests/engine/primitives/row_test.h"
#include "tests/support/oracle/gradients.h"

namespace tilewire::testing {

using ByArgument = std::map<int, std::vector<float>>;  // row-major, by argument

// Executes both modes of `primitive` on several teams, and expects the same bytes of all. `values`
// holds every input, and, where a sum post-op reads them, the outputs; returns the outputs.
ByArgument RunGradient(const Created& primitive, const ByArgument& values);

// The operands of a case by argument: kArgSrc, kArgWeights, kArgDiffDst.
ByArgument RandomOperands(bool integers, int64_t src, int64_t weights, int64_t dst);

// The values that a run of that kind should give, and how far each may be off.
struct ExpectedGradient {
  std::vector<double> values, bounds;
};
ExpectedGradient GradientOf(PropKind kind, const Products& products, const ByArgument& operands);
ExpectedGradient GradientOfBias(const Dims& dst, const ByArgument& operands);

void ExpectGradient(const ExpectedGradient& expected, const std::vector<float>& found, bool exact,
                    bool relative_to_all);

// One descriptor of a forward operation, `any` layouts or named ones.
template <typename Desc>
struct GradientCase {
  const char* why;
  Desc desc;
  Products products;
};

// The kinds that a row serves, of those with a gradient.
inline std::vector<PropKind> KindsOf(const ImplementationFacts& row) {
  std::vector<PropKind> kinds;
  for (PropKind kind : {PropKind::kBackwardData, PropKind::kBackwardWeights}) {
    if (row.traits.propagations.Has(kind)) kinds.push_back(kind);
  }
  return kinds;
}

// The rows of a table that serve one.
template <typename Desc>
std::vector<Implementation<Desc>> BackwardRows(absl::Span<const Implementation<Desc>> table) {
  std::vector<Implementation<Desc>> rows;
  for (const Implementation<Desc>& row : table) {
    if (!KindsOf(row).empty()) rows.push_back(row);
  }
  return rows;
}

// `desc` for a gradient: that of src has no bias.
template <typename Desc>
Desc Backward(Desc desc, PropKind kind) {
  desc.prop_kind = kind;
  if (kind == PropKind::kBackwardData) desc.bias = {};
  return desc;
}

template <typename Desc>
class GradientTest : public RowTest<Desc> {
 protected:
  using RowTest<Desc>::RowTest;

  // Every kind of the row on the case; with `integers` exactly.
  void Check(const GradientCase<Desc>& c, bool integers) {
    for (PropKind kind : KindsOf(this->GetParam())) {
      const Desc desc = Backward(c.desc, kind);
      SCOPED_TRACE(::testing::Message() << c.why << " " << PropKindName(kind));
      const std::optional<Created> primitive = this->Create(desc);
      if (!primitive) continue;
      const bool is_approximate = IsApproximate(*primitive);
      const bool of_src = kind == PropKind::kBackwardData;
      const ByArgument operands =
          RandomOperands(integers, c.desc.src.ElementCount(), c.desc.weights.ElementCount(),
                         c.desc.dst.ElementCount());
      const ByArgument found = RunGradient(*primitive, operands);
      ExpectGradient(GradientOf(kind, c.products, operands),
                     found.at(of_src ? kArgDiffSrc : kArgDiffWeights), integers && !is_approximate,
                     is_approximate);
      if (desc.bias.IsZero()) continue;
      ExpectGradient(GradientOfBias(c.desc.dst.dims(), operands), found.at(kArgDiffBias), integers,
                     false);
    }
  }

  // A run that adds to what the gradient holds, or masks it, or both, is the run without, added and
  // masked.
  void CheckPostOps(const GradientCase<Desc>& c) {
    for (PropKind kind : KindsOf(this->GetParam())) {
      const bool of_src = kind == PropKind::kBackwardData;
      for (const End end : {End{true, false}, End{false, true}, End{true, true}}) {
        if (end.masks && !of_src) continue;
        SCOPED_TRACE(::testing::Message()
                     << c.why << " " << PropKindName(kind) << (end.adds ? " adds" : "")
                     << (end.masks ? " masks" : ""));
        CheckEnd(c, kind, end);
      }
    }
  }

 private:
  // Winograd's algorithm may run inside.
  static bool IsApproximate(const Created& primitive) {
    return primitive.library->info().traits.bits_depend_on_position;
  }

  // The post-ops of a gradient.
  struct End {
    bool adds, masks;
  };

  // Numbers as a relu leaves them, with zeros of both signs, and a NaN, which is not above 0.
  static std::vector<float> Activation(int64_t count) {
    std::vector<float> y = RandomFloats(count, 30);
    for (size_t i = 0; i < y.size(); i += 3) y[i] = i % 2 == 0 ? 0.0f : -0.0f;
    if (!y.empty()) y.back() = std::numeric_limits<float>::quiet_NaN();
    return y;
  }

  void CheckEnd(const GradientCase<Desc>& c, PropKind kind, End end) {
    constexpr float kAlpha = 0.25f;
    Attributes attributes;
    std::vector<PostOp> chain;
    if (end.adds) chain.emplace_back(SumPostOp{});
    if (end.masks) chain.emplace_back(MaskPostOp{kAlpha});
    for (const PostOp& post_op : chain) EXPECT_TRUE(attributes.post_ops.Append(post_op).ok());
    const Desc desc = Backward(c.desc, kind);
    const std::optional<Created> plain = this->Create(desc), ended = this->Create(desc, attributes);
    EXPECT_EQ(plain.has_value(), ended.has_value());
    if (!plain || !ended) return;
    ByArgument values = RandomOperands(/*integers=*/true, c.desc.src.ElementCount(),
                                       c.desc.weights.ElementCount(), c.desc.dst.ElementCount());
    ByArgument expected = RunGradient(*plain, values);
    uint64_t seed = 20;
    for (const auto& [arg, gradient] : expected)
      values[arg] = RandomIntegers(static_cast<int64_t>(gradient.size()), ++seed);
    values[kArgSrc1] = Activation(c.desc.src.ElementCount());
    for (auto& [arg, gradient] : expected) {
      for (size_t i = 0; i < gradient.size(); ++i) {
        if (end.adds) gradient[i] += values.at(arg)[i];
        if (end.masks && !(values.at(kArgSrc1)[i] > 0)) gradient[i] *= kAlpha;
      }
    }
    const ByArgument found = RunGradient(*ended, values);
    for (const auto& [arg, gradient] : expected) {
      if (!IsApproximate(*plain)) {
        EXPECT_EQ(found.at(arg), gradient) << ArgName(arg);
        continue;
      }
      for (size_t i = 0; i < gradient.size(); ++i)
        ASSERT_NEAR(found.at(arg)[i], gradient[i], 1e-2) << ArgName(arg) << " " << i;
    }
  }
};

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_GRADIENT_TEST_H_
