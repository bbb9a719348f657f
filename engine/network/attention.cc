// SPDX-License-Identifier: Apache-2.0
#include "engine/network/attention.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"

namespace tilewire::network {
namespace {

using Sizes = absl::Span<const int64_t>;

int64_t ProductOf(Sizes sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) product *= size;
  return product;
}

bool IsOne(int64_t size) { return size == 1; }

// A mask with dimensions of 1 before its own up to `rank`, or without those that it has more.
std::optional<Dims> OfRank(const Dims& mask, size_t rank) {
  const size_t extra = mask.size() > rank ? mask.size() - rank : 0;
  if (!absl::c_all_of(Sizes(mask).first(extra), IsOne)) return std::nullopt;
  Dims dims(rank - (mask.size() - extra), 1);
  dims.insert(dims.end(), mask.begin() + extra, mask.end());
  return dims;
}

// The batches of a mask, so that batch b of the scores takes b modulo their number.
std::optional<int64_t> FoldedBatches(Sizes mask, Sizes scores) {
  size_t d = 0;
  while (d < mask.size() && mask[d] == 1) ++d;
  if (d == mask.size()) return 1;
  if (mask[d] < 1 || scores[d] % mask[d] != 0) return std::nullopt;
  if (mask.subspan(d + 1) != scores.subspan(d + 1)) return std::nullopt;
  return ProductOf(mask);
}

std::optional<int64_t> FoldedHeads(Sizes mask, Sizes scores) {
  if (absl::c_all_of(mask, IsOne)) return 1;
  return mask == scores ? std::optional(ProductOf(mask)) : std::nullopt;
}

std::optional<Dims> FoldedMask(const Dims& mask, const Dims& scores, size_t batch_dims) {
  const std::optional<Dims> dims = OfRank(mask, scores.size());
  if (!dims) return std::nullopt;
  const Sizes own = *dims, all = scores;
  const size_t lead = scores.size() - 2, head_dims = lead - batch_dims;
  const std::optional<int64_t> batches =
      FoldedBatches(own.first(batch_dims), all.first(batch_dims));
  const std::optional<int64_t> heads =
      FoldedHeads(own.subspan(batch_dims, head_dims), all.subspan(batch_dims, head_dims));
  if (!batches || !heads) return std::nullopt;
  for (size_t d = lead; d < scores.size(); ++d) {
    if (own[d] != 1 && own[d] != all[d]) return std::nullopt;
  }
  return Dims{*batches, *heads, own[lead], own[lead + 1]};
}

std::optional<HeadFold> FoldAt(const Dims& scores, const std::vector<Dims>& masks,
                               size_t batch_dims) {
  const Sizes lead = Sizes(scores).first(scores.size() - 2);
  HeadFold fold{ProductOf(lead.first(batch_dims)), ProductOf(lead.subspan(batch_dims)), {}};
  for (const Dims& mask : masks) {
    std::optional<Dims> folded = FoldedMask(mask, scores, batch_dims);
    if (!folded) return std::nullopt;
    fold.masks.push_back(*std::move(folded));
  }
  return fold;
}

std::optional<HeadFold> FoldScores(const Dims& scores, const std::vector<Dims>& masks) {
  if (scores.size() < 2) return std::nullopt;
  const size_t lead = scores.size() - 2;
  for (size_t head_dims = std::min<size_t>(1, lead); head_dims <= lead; ++head_dims) {
    std::optional<HeadFold> fold = FoldAt(scores, masks, lead - head_dims);
    if (fold) return fold;
  }
  return std::nullopt;
}

}  // namespace

std::optional<HeadFold> FoldHeads(const std::vector<Dims>& srcs) {
  if (srcs.size() < 3) return std::nullopt;
  const Dims &queries = srcs[0], &keys = srcs[1], &values = srcs[2];
  const size_t rank = queries.size();
  if (rank < 2 || keys.size() != rank || values.size() != rank) return std::nullopt;
  const Sizes lead = Sizes(queries).first(rank - 2);
  if (Sizes(keys).first(rank - 2) != lead || Sizes(values).first(rank - 2) != lead ||
      keys[rank - 2] != queries[rank - 1] || keys[rank - 1] != values[rank - 2]) {
    return std::nullopt;
  }
  Dims scores = queries;
  scores.back() = keys.back();
  return FoldScores(scores, {srcs.begin() + 3, srcs.end()});
}

bool IsMaskOf(const Dims& scores, const Dims& mask) {
  return FoldScores(scores, {mask}).has_value();
}

}  // namespace tilewire::network
