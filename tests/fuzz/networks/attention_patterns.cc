// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/networks/patterns.h"
#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

Dims Joined(Dims lead, int64_t rows, int64_t columns) {
  lead.push_back(rows);
  lead.push_back(columns);
  return lead;
}

// A matrix per index of `lead`: given, a literal, or a part of a projection whose heads are turned.
Made Matrices(NetworkMaker& maker, const Dims& lead, int64_t rows, int64_t columns) {
  Random& random = maker.random();
  const Dims dims = Joined(lead, rows, columns);
  if (Chance(random, 10)) return maker.Floats(dims);
  if (lead.empty() || Chance(random, 40)) return maker.Input(dims);
  // [..., rows, heads, columns] to [..., heads, rows, columns].
  Dims apart = dims;
  const size_t rank = dims.size();
  std::swap(apart[rank - 3], apart[rank - 2]);
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[rank - 3], order[rank - 2]);
  Made src = maker.Input(apart);
  if (Chance(random, 30)) {
    Dims flat(apart.begin(), apart.end() - 2);
    flat.push_back(apart[rank - 2] * apart[rank - 1]);
    src = Reshaped(maker, maker.Input(flat), apart);
  }
  return Transposed(maker, src, order);
}

Made Scaled(NetworkMaker& maker, const Made& src, int percent) {
  if (!Chance(maker.random(), percent)) return src;
  const float factor = Pick(maker.random(), {0.5f, 0.25f, 2.f, 1.f, -0.5f});
  const Made number = maker.Number(factor, static_cast<int>(maker.random().Integer(0, 2)));
  return Chance(maker.random(), 50) ? maker.Node("Div", {src, number})
                                    : maker.Node("Mul", {src, number});
}

// Dims that are broadcast to those of the scores, with some more of 1 before them.
Dims MaskDims(Random& random, const Dims& scores) {
  Dims dims = scores;
  for (int64_t& dim : dims) dim = Chance(random, 40) ? 1 : dim;
  if (Chance(random, 40)) dims.erase(dims.begin(), dims.begin() + random.Integer(0, dims.size()));
  if (Chance(random, 15)) dims.insert(dims.begin(), random.Integer(1, 3), 1);
  return dims;
}

Made Masked(NetworkMaker& maker, Made scores) {
  Random& random = maker.random();
  for (int64_t masks = random.Integer(0, 3); masks > 0 && scores.exists(); --masks) {
    const Dims dims = MaskDims(random, scores.dims);
    const Made mask = Chance(random, 60) ? maker.Floats(dims) : maker.Input(dims);
    scores =
        Chance(random, 50) ? maker.Node("Add", {scores, mask}) : maker.Node("Add", {mask, scores});
  }
  return scores;
}

// As Swin has it: the batches are apart as images and windows while a mask is added.
Made MaskedByWindow(NetworkMaker& maker, const Made& scores) {
  Random& random = maker.random();
  if (!scores.exists() || scores.rank() < 2 || !Chance(random, 25)) return scores;
  const int64_t windows = Pick<int64_t>(random, {1, 2, 3});
  if (scores.dims[0] % windows != 0) return scores;
  Dims split = scores.dims, dims = scores.dims;
  split[0] /= windows;
  split.insert(split.begin() + 1, windows);
  dims.insert(dims.begin(), 1);
  dims[1] = windows;
  if (dims.size() > 3 && Chance(random, 60)) dims[2] = 1;
  const Made apart = Reshaped(maker, scores, split);
  const Made sum = maker.Node("Add", {apart, maker.Floats(dims)});
  return Reshaped(maker, sum, scores.dims);
}

Made Product(NetworkMaker& maker, const Made& a, const Made& b, bool by_einsum) {
  if (!by_einsum || a.rank() != b.rank() || a.rank() > 8) return maker.Node("MatMul", {a, b});
  const std::string lead = std::string("abcdefgh").substr(0, a.rank() - 2);
  const std::string equation = absl::StrCat(lead, "mk,", lead, "kn->", lead, "mn");
  return maker.Node("Einsum", {a, b}, {String("equation", equation)});
}

}  // namespace

void AddAttention(NetworkMaker& maker) {
  Random& random = maker.random();
  Dims lead;
  for (int64_t d = random.Integer(0, 6); d > 0; --d) lead.push_back(random.Integer(1, 3));
  const int64_t rows = random.Integer(1, 5), depth = random.Integer(1, 5);
  const int64_t keys = Chance(random, 50) ? rows : random.Integer(1, 9);
  const Made q = Matrices(maker, lead, rows, depth);
  Made k = Matrices(maker, lead, keys, depth);
  std::vector<int64_t> order(k.dims.size());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() >= 2) std::swap(order[order.size() - 2], order[order.size() - 1]);
  k = Transposed(maker, k, order);
  const Made v = Chance(random, 10) && keys == rows && depth == keys
                     ? k
                     : Matrices(maker, lead, keys, random.Integer(1, 20));
  const bool by_einsum = Chance(random, 15);
  Made scores = Product(maker, Scaled(maker, q, 30), Scaled(maker, k, 15), by_einsum);
  scores = MaskedByWindow(maker, Masked(maker, Scaled(maker, scores, 30)));
  if (!scores.exists()) return;
  const int64_t axis = Chance(random, 92) ? -1 : random.Integer(0, scores.rank() - 1);
  const Made shares = maker.Node("Softmax", {scores}, {Int("axis", axis)});
  const Made dst = Product(maker, shares, v, by_einsum);
  if (Chance(random, 8)) maker.Node("Relu", {Chance(random, 50) ? shares : scores});
  if (dst.exists() && Chance(random, 50)) Transposed(maker, dst, RandomOrder(random, dst.rank()));
}

}  // namespace tilewire::testing
