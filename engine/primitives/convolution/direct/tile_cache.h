// SPDX-License-Identifier: Apache-2.0
//
// The generated functions of a tiling: one per tile and group of output blocks. Tiles that differ
// only in their place share their code. Immutable once generated; then thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_TILE_CACHE_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_TILE_CACHE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/primitives/convolution/direct/tiling.h"

namespace tilewire::convolution {

template <typename Config, typename Function>
class TileCache {
 public:
  using Generated = absl::StatusOr<std::unique_ptr<const jit::Generator>>;

  absl::Status Generate(
      const Tiling& tiling,
      absl::FunctionRef<Config(const Range& tile, const Range& oc_group)> config_of,
      absl::FunctionRef<Generated(const Config&)> generate) {
    const std::vector<Range> kinds = FindKinds(tiling, config_of);
    std::map<Key, Function> known;
    for (const Range& oc_group : tiling.oc_groups) {
      std::vector<Function> of_kind;
      for (const Range& tile : kinds) {
        const Config config = config_of(tile, oc_group);
        Function& function = known[KeyOf(config)];
        if (function == nullptr) {
          ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Generator> generator, generate(config));
          function = generator->entry<Function>();
          generators_.push_back(std::move(generator));
        }
        of_kind.push_back(function);
      }
      for (int kind : kinds_) functions_.push_back(of_kind[kind]);
    }
    return absl::OkStatus();
  }

  // One function per tile.
  const Function* of(int64_t oc_group) const { return &functions_[oc_group * kinds_.size()]; }

  int64_t code_bytes() const {
    int64_t bytes = 0;
    for (const auto& generator : generators_) bytes += generator->code_bytes();
    return bytes;
  }

 private:
  // The differences between the tiles of one tiling.
  using Key = std::tuple<int, int, int, bool, bool, std::vector<std::pair<int64_t, int64_t>>>;
  static Key KeyOf(const Config& config) {
    const EpilogueConfig& epilogue = config.epilogue;
    Key key = {epilogue.blocks,     epilogue.pixels,
               epilogue.tail_lanes, epilogue.begins_inside_line,
               epilogue.pads_line,  {}};
    for (const TapRange& taps : config.loops.taps)
      std::get<5>(key).push_back({taps.begin, taps.end});
    if constexpr (requires { config.kind; })
      std::get<5>(key).push_back({config.kind.forms, config.kind.is_split});
    if constexpr (requires { config.runs; }) {
      for (const auto& run : config.runs) {
        std::get<5>(key).push_back({run.first, run.count});
        std::get<5>(key).push_back({run.dst_bytes, 0});
      }
    }
    return key;
  }

  // Returns one tile of each kind, and sets kinds_ to the kind of every tile. A flat image has
  // hundreds of tiles of two kinds.
  std::vector<Range> FindKinds(
      const Tiling& tiling,
      absl::FunctionRef<Config(const Range& tile, const Range& oc_group)> config_of) {
    std::map<Key, int> known;
    std::vector<Range> kinds;
    for (const Range& tile : tiling.tiles) {
      const auto [it, is_new] =
          known.try_emplace(KeyOf(config_of(tile, tiling.oc_groups[0])), kinds.size());
      if (is_new) kinds.push_back(tile);
      kinds_.push_back(it->second);
    }
    return kinds;
  }

  std::vector<int> kinds_;  // of the tiles
  std::vector<std::unique_ptr<const jit::Generator>> generators_;
  std::vector<Function> functions_;  // [oc group][tile]
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_TILE_CACHE_H_
