// SPDX-License-Identifier: Apache-2.0
//
// Channels that are joined, shuffled and split again (ShuffleNet's units) are gathered at once from
// where they were computed: a shuffle, and a selection of channels after one, reads the sources of
// the concatenation before it.
#include <optional>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

using From = GatherChannels::From;

constexpr size_t kMostGatheredSources = 8;
// Each is listed. A request may decide how often a channel is repeated.
constexpr int64_t kMostListedChannels = int64_t{1} << 16;

// An operation that moves channels, as a gather from its own sources.
struct Moves {
  std::vector<ValueId> srcs;
  std::vector<From> from;
};

std::vector<From> ShuffledChannels(const Shuffle& shuffle, int64_t channels) {
  std::vector<From> from;
  const int64_t columns = channels / shuffle.group_size;
  for (int64_t c = 0; c < channels; ++c)
    from.push_back({0, c % columns * shuffle.group_size + c / columns});
  return from;
}

// Returns nullopt if anything but channels is selected, or an index outside the source, which has
// so many of them.
std::optional<std::vector<From>> SelectedChannels(const Select& select, int64_t channels) {
  std::vector<From> from;
  for (size_t d = 0; d < select.from.size(); ++d) {
    if (d != 1 && !select.from[d].empty()) return std::nullopt;
  }
  if (select.from.size() < 2 || select.from[1].empty()) return std::nullopt;
  for (const IndexRun& run : select.from[1]) {
    for (int64_t i = 0; i < run.count; ++i) {
      const int64_t channel = run.start + i * run.step;
      if (channel < 0 || channel >= channels) return std::nullopt;
      from.push_back({0, channel});
    }
  }
  return from;
}

std::optional<Moves> MovesOf(Editor& editor, int op) {
  if (op == Editor::kNone || editor.removed(op)) return std::nullopt;
  const Operation& operation = editor.operation(op);
  const Dims& dims = editor.dims(operation.dst);
  if (dims.size() < 2 || dims[1] > kMostListedChannels) return std::nullopt;
  Moves moves{operation.srcs, {}};
  if (const auto* gather = editor.As<GatherChannels>(op)) {
    moves.from = gather->from;
    return moves;
  }
  if (const auto* shuffle = editor.As<Shuffle>(op); shuffle != nullptr && shuffle->axis == 1) {
    moves.from = ShuffledChannels(*shuffle, dims[1]);
    return moves;
  }
  if (const auto* select = editor.As<Select>(op)) {
    const auto from = SelectedChannels(*select, editor.dims(operation.srcs[0])[1]);
    if (!from) return std::nullopt;
    moves.from = *from;
    return moves;
  }
  if (const auto* concat = editor.As<Concat>(op); concat != nullptr && concat->axis == 1) {
    for (size_t s = 0; s < operation.srcs.size(); ++s) {
      for (int64_t c = 0; c < editor.dims(operation.srcs[s])[1]; ++c)
        moves.from.push_back({static_cast<int>(s), c});
    }
    return moves;
  }
  return std::nullopt;
}

// `moves` of one source, through `before`, whose result that source is; the sources that are left
// over drop out.
Moves Through(const Moves& moves, const Moves& before) {
  Moves result;
  std::vector<int> renumbered(before.srcs.size(), -1);
  for (const From& from : moves.from) {
    From origin = before.from[from.channel];
    int& number = renumbered[origin.src];
    if (number < 0) {
      number = static_cast<int>(result.srcs.size());
      result.srcs.push_back(before.srcs[origin.src]);
    }
    origin.src = number;
    result.from.push_back(origin);
  }
  return result;
}

// The moves of a shuffle after a concatenation, or of a selection after a gather, as one gather.
std::optional<Moves> Fused(Editor& editor, int op) {
  const bool shuffles = editor.As<Shuffle>(op) != nullptr;
  if (!shuffles && editor.As<Select>(op) == nullptr) return std::nullopt;
  // Integers have steps of their own.
  if (editor.network().values[editor.operation(op).dst].type != DataType::kF32) return std::nullopt;
  const auto moves = MovesOf(editor, op);
  if (!moves) return std::nullopt;
  const int before = editor.producer(moves->srcs[0]);
  const bool reads = shuffles ? editor.As<Concat>(before) != nullptr
                              : editor.As<GatherChannels>(before) != nullptr ||
                                    editor.As<Shuffle>(before) != nullptr;
  const auto earlier = reads ? MovesOf(editor, before) : std::nullopt;
  if (!earlier) return std::nullopt;
  Moves fused = Through(*moves, *earlier);
  return fused.srcs.size() <= kMostGatheredSources ? std::optional<Moves>(std::move(fused))
                                                   : std::nullopt;
}

}  // namespace

void FuseGatherChannels(Network* network) {
  ForEachOperation(network, [](Editor& editor, int op) {
    std::optional<Moves> fused = Fused(editor, op);
    if (!fused) return;
    editor.SetSources(op, std::move(fused->srcs));
    editor.operation(op).params = GatherChannels{std::move(fused->from)};
  });
  RemoveDead(network);
}

}  // namespace tilewire::network
