// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {
namespace {

using Indices = std::vector<int64_t>;  // of elements along a dimension; -1 is none

constexpr int64_t kNone = -1;

Indices IndicesOfRuns(const std::vector<IndexRun>& runs) {
  Indices indices;
  for (const IndexRun& run : runs) {
    for (int64_t i = 0; i < run.count; ++i)
      indices.push_back(run.start < 0 ? kNone : run.start + i * run.step);
  }
  return indices;
}

std::vector<IndexRun> RunsOfIndices(const Indices& indices) {
  std::vector<IndexRun> runs;
  for (int64_t index : indices) {
    const int64_t step = index == kNone ? 0 : 1;
    const bool goes_on = !runs.empty() && runs.back().step == step &&
                         (step == 0 || index == runs.back().start + runs.back().count);
    if (goes_on) {
      ++runs.back().count;
    } else {
      runs.push_back({.start = index, .step = step, .count = 1});
    }
  }
  if (runs.empty()) runs.push_back({.start = 0, .step = 1, .count = 0});
  return runs;
}

// For each of `size` elements, the place in `from` that names it; nullopt if several do.
std::optional<Indices> Inverse(const Indices& from, int64_t size) {
  Indices places(size, kNone);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == kNone) continue;
    if (places[from[i]] != kNone) return std::nullopt;
    places[from[i]] = static_cast<int64_t>(i);
  }
  return places;
}

Select WholeOfRank(size_t rank) { return {.from = std::vector<std::vector<IndexRun>>(rank)}; }

// The sums, along a dimension that gets `size` elements, of what `from` takes from each.
ValueId SumOfRepeats(int axis, const Indices& from, int64_t size, ValueId gradient,
                     GradientContext& context) {
  Dims dims = context.dims(gradient);
  Indices inside, named;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == kNone) continue;
    inside.push_back(static_cast<int64_t>(i));
    named.push_back(from[i]);
  }
  if (inside.size() < from.size()) {
    Select taken = WholeOfRank(dims.size());
    taken.from[axis] = RunsOfIndices(inside);
    dims[axis] = static_cast<int64_t>(inside.size());
    gradient = context.Append(std::move(taken), {gradient}, dims);
  }
  dims[axis] = size;
  if (size == 1) return context.SumTo(gradient, dims);
  const Dims count = {static_cast<int64_t>(named.size())};
  const ValueId indices = context.AppendLiteral(MakeInts("indices", count, std::move(named)));
  return context.Append(GatherGradient{axis}, {gradient, indices}, dims);
}

// Along each dimension the elements that a result has; all of them where nothing is said.
using Taken = std::vector<std::optional<Indices>>;

// The gradient by a tensor of `dims`, from which the result is taken.
ValueId Scattered(const Taken& from, const Dims& dims, GradientContext& context) {
  ValueId gradient = context.gradient();
  Select inverse = WholeOfRank(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!from[d]) continue;
    if (const std::optional<Indices> places = Inverse(*from[d], dims[d])) {
      inverse.from[d] = RunsOfIndices(*places);
    } else {
      gradient = SumOfRepeats(static_cast<int>(d), *from[d], dims[d], gradient, context);
    }
  }
  const bool takes_all =
      absl::c_all_of(inverse.from, [](const auto& runs) { return runs.empty(); });
  return takes_all ? gradient : context.Append(std::move(inverse), {gradient}, dims);
}

absl::Status AppendMoved(OperationParams move, GradientContext& context) {
  context.Add(0,
              context.Append(std::move(move), {context.gradient()}, context.dims(context.src())));
  return absl::OkStatus();
}

}  // namespace

absl::Status AppendGradients(const Concat& concat, GradientContext& context) {
  int64_t begin = 0;
  for (size_t i = 0; i < context.src_count(); ++i) {
    const Dims dims = context.dims(context.src(i));
    const int64_t size = dims[concat.axis];
    if (context.Wants(i)) {
      Select part = WholeOfRank(dims.size());
      part.from[concat.axis] = {{.start = begin, .step = 1, .count = size}};
      context.Add(i, context.Append(std::move(part), {context.gradient()}, dims));
    }
    begin += size;
  }
  return absl::OkStatus();
}

absl::Status AppendGradients(const Convert& convert, GradientContext& context) {
  if (absl::c_any_of(convert.via, [](DataType type) { return IsIntegerType(type); }))
    return Unimplemented("it rounds to integers on the way");
  context.Add(0, context.gradient());
  return absl::OkStatus();
}

absl::Status AppendGradients(const Gather& gather, GradientContext& context) {
  context.Add(0, context.Append(GatherGradient{gather.axis}, {context.gradient(), context.src(1)},
                                context.dims(context.src())));
  return absl::OkStatus();
}

absl::Status AppendGradients(const GatherChannels& gather, GradientContext& context) {
  for (size_t i = 0; i < context.src_count(); ++i) {
    if (!context.Wants(i)) continue;
    const Dims dims = context.dims(context.src(i));
    Taken from(dims.size());
    Indices& channels = from[1].emplace();
    for (const GatherChannels::From& one : gather.from)
      channels.push_back(one.src == static_cast<int>(i) ? one.channel : kNone);
    context.Add(i, Scattered(from, dims, context));
  }
  return absl::OkStatus();
}

absl::Status AppendGradients(const Reshape&, GradientContext& context) {
  return AppendMoved(Reshape{}, context);
}

absl::Status AppendGradients(const Select& select, GradientContext& context) {
  const Dims dims = context.dims(context.src());
  Taken from(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!select.from[d].empty()) from[d] = IndicesOfRuns(select.from[d]);
  }
  context.Add(0, Scattered(from, dims, context));
  return absl::OkStatus();
}

absl::Status AppendGradients(const Shuffle& shuffle, GradientContext& context) {
  const int64_t size = context.dims(context.src())[shuffle.axis];
  return AppendMoved(Shuffle{shuffle.axis, size / shuffle.group_size}, context);
}

absl::Status AppendGradients(const Transpose& transpose, GradientContext& context) {
  std::vector<int> back(transpose.order.size());
  for (size_t d = 0; d < back.size(); ++d) back[transpose.order[d]] = static_cast<int>(d);
  return AppendMoved(Transpose{std::move(back)}, context);
}

}  // namespace tilewire::network
