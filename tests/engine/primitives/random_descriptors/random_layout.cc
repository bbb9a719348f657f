// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/random_descriptors/random_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/format_tag.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

std::vector<int> RandomOrder(Random& random, int rank) {
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  for (int d = rank - 1; d > 0; --d) std::swap(order[d], order[random.Integer(0, d)]);
  return order;
}

// Any order of the dimensions, up to three blocks of any dimension.
std::string RandomPattern(Random& random, int rank) {
  std::string blocks;
  uint32_t blocked = 0;
  for (int64_t n = random.Integer(0, 3); n > 0; --n) {
    const int64_t d = random.Integer(0, rank - 1);
    blocked |= 1u << d;
    absl::StrAppend(&blocks, Pick(random, {2, 3, 4, 8, 16, 32, 64}));
    blocks.push_back(static_cast<char>('a' + d));
  }
  std::string pattern;
  for (int d : RandomOrder(random, rank)) {
    pattern.push_back(static_cast<char>((blocked >> d & 1 ? 'A' : 'a') + d));
  }
  return pattern + blocks;
}

absl::StatusOr<MemoryDesc> RandomTag(Random& random, const Dims& dims, DataType type) {
  std::vector<FormatTag> tags;
  for (const FormatTagRow& row : FormatTags()) {
    if (FormatTagRank(row.tag) == static_cast<int>(dims.size())) tags.push_back(row.tag);
  }
  if (tags.empty())
    return MemoryDesc::CreatePattern(dims, type, RandomPattern(random, dims.size()));
  return MemoryDesc::Create(dims, type,
                            tags[random.Integer(0, static_cast<int64_t>(tags.size()) - 1)]);
}

// Dense strides of any order, with gaps or with one stride that is 0, negative or huge.
absl::StatusOr<MemoryDesc> RandomStrides(Random& random, const Dims& dims, DataType type) {
  Dims strides(dims.size(), 1);
  int64_t stride = Pick(random, {1, 1, 1, 2, 16});
  for (int d : RandomOrder(random, static_cast<int>(dims.size()))) {
    strides[d] = stride;
    const auto next = CheckedMul(stride, std::max<int64_t>(dims[d], 1));
    stride = CheckedAdd(next.value_or(1), Pick(random, {0, 0, 0, 1, 7, 16})).value_or(1);
  }
  if (Chance(random, 40)) {
    int64_t& spoiled = strides[random.Integer(0, static_cast<int64_t>(dims.size()) - 1)];
    spoiled = Chance(random, 60) ? 0 : RandomExtreme(random);
  }
  return MemoryDesc::CreateStrided(dims, type, strides);
}

// A part of a larger plain tensor: gaps, and an offset before the first element.
absl::StatusOr<MemoryDesc> RandomPart(Random& random, const Dims& dims, DataType type) {
  Dims whole = dims, offsets(dims.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    offsets[d] = random.Integer(0, 2);
    const auto size = CheckedAdd(dims[d], offsets[d] + random.Integer(0, 2));
    if (!size) return absl::InvalidArgumentError("a size that overflows");
    whole[d] = *size;
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc,
                        RandomLayout(whole, type, LayoutChoice::kTag, random.Next()));
  return desc.SubMemory(dims, offsets);
}

}  // namespace

int64_t RandomSize(Random& random) {
  const int64_t percent = random.Integer(1, 100);
  if (percent <= 2) return 0;
  if (percent <= 25) return 1;
  if (percent <= 70) return random.Integer(2, 9);
  if (percent <= 85) return Pick<int64_t>(random, {11, 13, 15, 16, 17, 19, 23, 31, 32, 33});
  if (percent <= 97) return random.Integer(10, 70);
  return random.Integer(71, 600);
}

Dims RandomSizes(Random& random, int rank) {
  Dims dims;
  for (int d = 0; d < rank; ++d) dims.push_back(RandomSize(random));
  // One size of millions, alone: tables and loops of that length fit the bounds of the service.
  if (rank > 0 && Chance(random, 1)) {
    std::fill(dims.begin(), dims.end(), 1);
    dims[random.Integer(0, rank - 1)] = int64_t{1} << random.Integer(10, 26);
  }
  return dims;
}

int64_t RandomExtreme(Random& random) {
  const int64_t value =
      Pick<int64_t>(random, {0, -1, -2, int64_t{1} << 15, int64_t{1} << 20, (int64_t{1} << 31) - 1,
                             int64_t{1} << 31, (int64_t{1} << 32) + 1, int64_t{1} << 40,
                             int64_t{1} << 62, kLargest - 1, kLargest, -kLargest - 1});
  return value;
}

DataType RandomType(Random& random) {
  if (Chance(random, 1)) return DataType::kUndef;
  return Pick(random, {DataType::kF32, DataType::kF32, DataType::kF32, DataType::kS32,
                       DataType::kS8, DataType::kU8, DataType::kBf16, DataType::kF16});
}

LayoutChoice RandomLayoutChoice(Random& random) {
  const int64_t percent = random.Integer(1, 100);
  if (percent <= 30) return LayoutChoice::kAny;
  if (percent <= 50) return LayoutChoice::kPlain;
  if (percent <= 80) return LayoutChoice::kTag;
  if (percent <= 87) return LayoutChoice::kPattern;
  if (percent <= 94) return LayoutChoice::kStrides;
  return LayoutChoice::kPart;
}

absl::StatusOr<MemoryDesc> RandomLayout(const Dims& dims, DataType type, LayoutChoice choice,
                                        uint64_t seed) {
  Random random(seed);
  const int rank = static_cast<int>(dims.size());
  if (rank == 0) return absl::InvalidArgumentError("no dimensions");
  switch (choice) {
    case LayoutChoice::kAny:
      return MemoryDesc::CreateAny(dims, type);
    case LayoutChoice::kPlain:
      return MemoryDesc::CreatePattern(dims, type, std::string("abcdefghijkl").substr(0, rank));
    case LayoutChoice::kTag:
      return RandomTag(random, dims, type);
    case LayoutChoice::kPattern:
      return MemoryDesc::CreatePattern(dims, type, RandomPattern(random, rank));
    case LayoutChoice::kStrides:
      return RandomStrides(random, dims, type);
    case LayoutChoice::kPart:
      break;
  }
  return RandomPart(random, dims, type);
}

}  // namespace tilewire::testing
