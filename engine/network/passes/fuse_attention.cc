// SPDX-License-Identifier: Apache-2.0
//
// softmax(q k) v becomes one operation, whose scores need not leave the cache. Between the products
// stand, in the order in which exporters write them, factors of q, of k or of the scores, then sums
// with masks. The matrices may have any leading dimensions, as of images, windows and heads. A mask
// of the windows of an image may also be added to scores whose batches are split into images and
// windows.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "engine/network/attention.h"
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// The pattern found between softmax and the product of q and k.
struct Scores {
  ValueId queries, keys;
  float scale = 1;
  std::vector<ValueId> masks;
};

// The x of `value` = factor * x, after which `factor` is multiplied into `scale`; else `value`.
ValueId WithoutFactor(Editor& editor, ValueId value, float* scale) {
  const int op = editor.producer(value);
  const std::optional<float> factor = editor.FactorOf(op);
  if (!factor || !std::isfinite(*scale * *factor)) return value;
  *scale *= *factor;
  return editor.operation(op).srcs[0];
}

// The two sources of a sum.
const std::vector<ValueId>* AddendsOf(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  const bool adds = editor.SourcesOf(op, Function::kAdd) != nullptr;
  if (!adds && editor.As<Sum>(op) == nullptr) return nullptr;
  const std::vector<ValueId>& srcs = editor.operation(op).srcs;
  return srcs.size() == 2 ? &srcs : nullptr;
}

std::optional<Scores> ScoresOf(Editor& editor, ValueId value, bool after_masks);

// The scores in a sum of them and a mask that is added to `dims`.
std::optional<Scores> MaskedScores(Editor& editor, const std::vector<ValueId>& addends,
                                   const Dims& dims) {
  for (int s = 0; s < 2; ++s) {
    if (editor.dims(addends[s]) != dims || !IsMaskOf(dims, editor.dims(addends[1 - s]))) continue;
    std::optional<Scores> scores = ScoresOf(editor, addends[s], /*after_masks=*/true);
    if (scores) scores->masks.push_back(addends[1 - s]);
    if (scores) return scores;
  }
  return std::nullopt;
}

// The scores of `value`, [images * windows, heads, M, N], where it is a reshape of a sum of scores
// [images, windows, heads, M, N] and a mask of windows, and these are a reshape too.
std::optional<Scores> WindowedScores(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  const Dims dims = editor.dims(value);
  if (editor.As<Reshape>(op) == nullptr || dims.size() != 4) return std::nullopt;
  const ValueId sum = editor.operation(op).srcs[0];
  const std::vector<ValueId>* addends = AddendsOf(editor, sum);
  const Dims split = editor.dims(sum);
  if (addends == nullptr || editor.use_count(sum) != 1 || split.size() != 5 ||
      !std::equal(split.begin() + 2, split.end(), dims.begin() + 1)) {
    return std::nullopt;
  }
  for (int s = 0; s < 2; ++s) {
    const ValueId before = (*addends)[s], mask = (*addends)[1 - s];
    const int reshape = editor.producer(before);
    const Dims& of_mask = editor.dims(mask);
    if (editor.As<Reshape>(reshape) == nullptr || editor.use_count(before) != 1) continue;
    const ValueId src = editor.operation(reshape).srcs[0];
    const bool of_windows = of_mask.size() == 5 && of_mask[0] == 1 && of_mask[1] == split[1];
    if (!of_windows || editor.dims(src) != dims || !IsMaskOf(dims, of_mask)) continue;
    std::optional<Scores> scores = ScoresOf(editor, src, /*after_masks=*/true);
    if (scores) scores->masks.push_back(mask);
    return scores;
  }
  return std::nullopt;
}

// `after_masks`: `value` is read by a sum with a mask, or by softmax itself.
std::optional<Scores> ScoresOf(Editor& editor, ValueId value, bool after_masks) {
  if (editor.use_count(value) != 1) return std::nullopt;
  const int op = editor.producer(value);
  if (editor.As<Matmul>(op) != nullptr) {
    Scores scores;
    const std::vector<ValueId>& srcs = editor.operation(op).srcs;
    scores.queries = WithoutFactor(editor, srcs[0], &scores.scale);
    scores.keys = WithoutFactor(editor, srcs[1], &scores.scale);
    return scores;
  }
  if (!after_masks) return std::nullopt;
  if (const std::vector<ValueId>* addends = AddendsOf(editor, value))
    return MaskedScores(editor, *addends, editor.dims(value));
  float scale = 1;
  const ValueId unscaled = WithoutFactor(editor, value, &scale);
  if (unscaled == value) return WindowedScores(editor, value);
  std::optional<Scores> scores = ScoresOf(editor, unscaled, /*after_masks=*/false);
  if (scores) scores->scale *= scale;
  return scores && std::isfinite(scores->scale) ? scores : std::nullopt;
}

// Whether attention takes these sources.
bool Fits(const Network& network, const std::vector<ValueId>& srcs) {
  std::vector<Dims> dims;
  for (ValueId src : srcs) {
    const Value& value = network.values[src];
    if (value.type != DataType::kF32 || ElementCount(value.dims) == 0) return false;
    dims.push_back(value.dims);
  }
  return FoldHeads(dims).has_value();
}

// Whether it was attention.
bool TryAttention(Editor& editor, int op) {
  if (editor.As<Matmul>(op) == nullptr) return false;
  const ValueId shares = editor.operation(op).srcs[0], values = editor.operation(op).srcs[1];
  const int normalized = editor.producer(shares);
  const Softmax* softmax = editor.As<Softmax>(normalized);
  if (softmax == nullptr || editor.use_count(shares) != 1 ||
      softmax->axis != static_cast<int>(editor.dims(shares).size()) - 1) {
    return false;
  }
  const ValueId src = editor.operation(normalized).srcs[0];
  std::optional<Scores> scores = ScoresOf(editor, src, /*after_masks=*/true);
  if (!scores) return false;
  std::vector<ValueId> srcs = {scores->queries, scores->keys, values};
  srcs.insert(srcs.end(), scores->masks.begin(), scores->masks.end());
  if (!Fits(editor.network(), srcs)) return false;
  editor.SetSources(op, std::move(srcs));
  editor.operation(op).params = Attention{scores->scale};
  return true;
}

}  // namespace

void FuseAttention(Network* network) {
  bool found = false;
  ForEachOperation(network, [&](Editor& editor, int op) { found |= TryAttention(editor, op); });
  if (found) RemoveDead(network);  // what led to the scores
}

}  // namespace tilewire::network
