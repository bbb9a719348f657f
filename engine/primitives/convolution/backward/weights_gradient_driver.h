// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a convolution's weights, and of its bias, around the tiles of
// weights_gradient_generator.h. An image is cut into bands of rows (of pixels, where rows are
// long), whose part of src and diff_dst stays in the first cache while taps and channels pass.
//
// A gradient is the sum, in order, over images and over the bands of an image, of the chain of each
// band, so its bits depend on the descriptor of one image and on the vector unit alone. Who adds is
// chosen by the size of diff_weights:
//
//   large   blocks of diff_weights have owners, which add up all images in place
//   small   each image has a gradient of its own in the scratchpad; they are then added in the
//           order of images. Every tensor is read once
//
// Immutable once created; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_DRIVER_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_DRIVER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/range.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/tap_runs.h"
#include "engine/primitives/convolution/backward/weights_gradient_generator.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// Strides in elements. Lanes of diff_weights are output channels, and neighbours.
struct WeightsGradientProblem {
  struct Weights {
    int64_t group = 0, oc_block = 0, ic_block = 0, channel = 0;
    Spatial taps{0, 0, 0};
    int64_t floats = 0;  // of the whole tensor, which is dense
  };

  Geometry geometry;
  VectorUnit unit;
  ActivationStrides src, dst;  // dst: of diff_dst
  Weights weights;
  bool has_bias = false;
  bool adds = false;  // to what diff_weights and diff_bias hold
};

class WeightsGradientDriver {
 public:
  // The first element of each tensor; diff_bias is null where there is none.
  struct Operands {
    const float *src, *diff_dst;
    float *diff_weights, *diff_bias;
  };

  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  static absl::StatusOr<WeightsGradientDriver> Create(absl::string_view name,
                                                      const WeightsGradientProblem& problem);

  // Returns early when the run is stopped.
  void Run(const Operands& operands, std::byte* scratchpad, const threading::Team& team) const;

  int64_t scratchpad_bytes() const;
  int64_t code_bytes() const;

 private:
  // Blocks of diff_weights of one group, and the images whose sum they get.
  struct Part {
    Operands operands;
    Range images, oc_blocks, ic_blocks;
    int64_t group = 0;
    bool begins_at_zero = true;
  };
  // Rows and pixels of one depth of diff_dst.
  struct Band {
    int64_t depth;
    TapRange rows, pixels;
  };
  // Where a tile's taps begin: elements of all operands, and the tile's shape.
  struct Place {
    const float *src, *diff_dst;
    float* diff_weights;
    int blocks;
    bool tail;
  };
  using Tile = std::unique_ptr<const jit::Generator>;

  explicit WeightsGradientDriver(const WeightsGradientProblem& problem);
  void ChooseBands();
  void ChooseOwners();
  void ChooseImages();
  absl::Status Compile(absl::string_view name);
  absl::Status CompileTile(absl::string_view name, int blocks, int channels, bool tail);
  absl::Status CompileBiasTile(absl::string_view name, int blocks, bool tail);

  int64_t OcBlocks() const;
  int64_t IcBlocks() const;
  int64_t ChannelsOf(int64_t ic_block) const;
  int BlocksAt(const Range& oc_blocks, int64_t block) const;
  bool HasTail(int64_t block, int blocks) const;
  Part PartAt(int64_t index, const Operands& operands) const;
  int64_t Parts() const;

  void RunOwners(const Operands& operands, const threading::Team& team) const;
  void RunImages(const Operands& operands, float* sums, const threading::Team& team) const;
  void AddImages(const float* sums, Range images, const Operands& operands,
                 const threading::Team& team) const;
  void RunPart(const Part& part) const;
  void ZeroPart(const Part& part) const;
  void RunBand(const Part& part, int64_t image, const Band& band) const;
  void RunBias(const Part& part, const Band& band, const Place& place, int64_t block) const;
  void RunTaps(const Band& band, const Place& place, int64_t channels) const;
  void RunRowOfTaps(const Band& band, const Place& place, int64_t channels, int64_t tap) const;
  void RunTile(const Place& place, const TapRange& rows, const TapRange& pixels,
               int64_t channels) const;

  WeightsGradientProblem problem_;
  std::array<std::vector<TapRange>, 3> outputs_;  // by dimension and tap: those inside src
  int64_t band_rows_ = 1, band_pixels_ = 1;
  bool by_image_ = false;
  int64_t oc_at_once_ = 0, ic_at_once_ = 0;                          // blocks of a part
  int64_t images_at_once_ = 0, image_floats_ = 0, bias_floats_ = 0;  // in the scratchpad
  // By blocks - 1, channels - 1, and whether the last block has a tail; those of the bias likewise.
  std::array<std::array<std::array<Tile, 2>, 8>, 3> tiles_;
  std::array<std::array<Tile, 2>, 3> bias_tiles_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_DRIVER_H_
