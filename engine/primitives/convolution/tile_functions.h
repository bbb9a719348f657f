// SPDX-License-Identifier: Apache-2.0
//
// The generated functions of a tiling: one a tile and group of output blocks. Tiles that differ in
// their place alone share their code. Immutable.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_TILE_FUNCTIONS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_TILE_FUNCTIONS_H_

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
#include "engine/primitives/convolution/tiling.h"

namespace tilewire::convolution {

template <typename Config, typename Function>
class TileFunctions {
 public:
  using Generated = absl::StatusOr<std::unique_ptr<const jit::Generator>>;

  absl::Status Generate(
      const Tiling& tiling,
      absl::FunctionRef<Config(const Range& tile, const Range& oc_group)> config_of,
      absl::FunctionRef<Generated(const Config&)> generate) {
    std::map<Key, Function> known;
    tiles_ = tiling.tiles.size();
    for (const Range& oc_group : tiling.oc_groups) {
      for (const Range& tile : tiling.tiles) {
        const Config config = config_of(tile, oc_group);
        Function& function = known[KeyOf(config)];
        if (function == nullptr) {
          ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Generator> generator, generate(config));
          function = generator->entry<Function>();
          generators_.push_back(std::move(generator));
        }
        functions_.push_back(function);
      }
    }
    return absl::OkStatus();
  }

  // One a tile.
  const Function* of(int64_t oc_group) const { return &functions_[oc_group * tiles_]; }

  int64_t code_bytes() const {
    int64_t bytes = 0;
    for (const auto& generator : generators_) bytes += generator->code_bytes();
    return bytes;
  }

 private:
  // What may differ between the tiles of one tiling.
  using Key = std::tuple<int, int, int, std::vector<std::pair<int64_t, int64_t>>>;
  static Key KeyOf(const Config& config) {
    Key key = {config.epilogue.blocks, config.epilogue.pixels, config.epilogue.tail_lanes, {}};
    for (const TapRange& taps : config.loops.taps)
      std::get<3>(key).push_back({taps.begin, taps.end});
    return key;
  }

  int64_t tiles_ = 0;
  std::vector<std::unique_ptr<const jit::Generator>> generators_;
  std::vector<Function> functions_;  // [oc group][tile]
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_TILE_FUNCTIONS_H_
