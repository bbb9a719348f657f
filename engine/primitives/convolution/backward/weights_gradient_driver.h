// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a convolution's weights, and of its bias, around the tiles of
// weights_gradient_tiles.h. Images are cut into bands (weights_gradient_bands.h).
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

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/range.h"
#include "engine/kernels/tiles/tap_runs.h"
#include "engine/primitives/convolution/backward/weights_gradient_bands.h"
#include "engine/primitives/convolution/backward/weights_gradient_problem.h"
#include "engine/primitives/convolution/backward/weights_gradient_tiles.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

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

  // Copies that are read in the place of src: each image is copied by the thread that is about to
  // read it, so that it is in its second cache.
  struct CopiedImages {
    absl::FunctionRef<void(int64_t image, float* copy)> make;
    float* copies;  // one for each thread of the team
  };

  // Returns early when the run is stopped.
  void Run(const Operands& operands, std::byte* scratchpad, const threading::Team& team) const;
  // Whether images have gradients of their own and are so many that each is one thread's.
  bool TakesCopies(const threading::Team& team) const;
  // If TakesCopies(); src of the operands is not read.
  void RunOnCopies(const Operands& operands, const CopiedImages& src, std::byte* scratchpad,
                   const threading::Team& team) const;

  int64_t scratchpad_bytes() const;
  int64_t code_bytes() const { return tiles_.code_bytes(); }

 private:
  // Blocks of diff_weights of one group, and the images whose sum they get.
  struct Part {
    Operands operands;
    Range images, oc_blocks, ic_blocks;
    int64_t group = 0;
    int64_t src_image = 0;  // with which src begins
    bool begins_at_zero = true;
  };
  using Distance = WeightsGradientBands::Distance;
  struct Band : WeightsGradientBands::Band {
    Distance next;          // from here to the next one of the part
    bool replaces = false;  // what diff_weights holds
  };
  // Where the taps of some blocks begin: elements of all operands; `ahead`: from there to what is
  // fetched for later.
  struct Place {
    const float *src, *diff_dst;
    float* diff_weights;
    int blocks;          // of output channels
    bool tail, is_last;  // the last of them is not full; they are the last of the part
    int64_t channels;    // of src
    Distance ahead;
    int64_t src_blocks = 1, dst_ahead_step = 0;  // see WeightsGradientTiles::Call
    int blocks_by_rows = 1;                      // of diff_dst that rows of taps fetch
    bool replaces = false;
  };

  explicit WeightsGradientDriver(const WeightsGradientProblem& problem);
  void ChooseOwners();
  void ChooseImages();
  absl::Status Compile(absl::string_view name);

  int64_t OcBlocks() const;
  int64_t IcBlocks() const;
  int64_t ChannelsOf(int64_t ic_block) const;
  int BlocksAt(const Range& oc_blocks, int64_t block) const;
  bool HasTail(int64_t block, int blocks) const;
  Part PartAt(int64_t index, const Operands& operands) const;
  int64_t Parts() const;

  void RunOwners(const Operands& operands, const threading::Team& team) const;
  void RunImages(const Operands& operands, const CopiedImages* src, float* sums,
                 const threading::Team& team) const;
  Part PartOfImage(int64_t index, int64_t image, const Operands& operands, float* sums) const;
  void AddImages(const float* sums, Range images, const Operands& operands,
                 const threading::Team& team) const;
  void RunPart(const Part& part) const;
  bool FirstBandReplaces() const;
  void ZeroWeights(const Part& part) const;
  void ZeroBias(const Part& part) const;
  void RunBand(const Part& part, const Band& band) const;
  void RunBlocks(const Part& part, const Band& band, const Range& ic_blocks) const;
  void LookAhead(const Part& part, const Band& band, const Range& ic_blocks, int64_t i,
                 Place* place) const;
  void RunBias(const Part& part, const Band& band, const Place& place, int64_t block) const;
  WeightsGradientTiles::Call CallAt(const Place& place, const TapRange& rows,
                                    const TapRange& pixels) const;
  void RunTaps(const Band& band, const Place& place) const;
  void RunRowOfTaps(const Band& band, const Place& place, int64_t tap) const;
  void RunTapsOfRow(const Place& place, const TapRange& rows, const TapRange& pixels,
                    const TapRange& taps) const;
  void RunPixels(const Place& place, const TapRange& rows, const TapRange& pixels,
                 const TapRange& taps) const;

  WeightsGradientProblem problem_;
  WeightsGradientTiles tiles_;
  WeightsGradientBands bands_;
  std::array<std::vector<TapRange>, 3> outputs_;  // by dimension and tap: those inside src
  bool by_image_ = false;
  int64_t oc_at_once_ = 0, ic_at_once_ = 0;                          // blocks of a part
  int64_t images_at_once_ = 0, image_floats_ = 0, bias_floats_ = 0;  // in the scratchpad
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_DRIVER_H_
