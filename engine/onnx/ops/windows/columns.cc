// SPDX-License-Identifier: Apache-2.0
//
// Col2Im: each column holds the elements of a block, and an element of the image is the sum of the
// elements that lie on it. For each place in a block, its elements are moved to where they lie in
// the image, zeros between them; the images are added.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

struct ImageBlocks {
  Dims image, block, dilations, strides, pads;  // pads: all begins, then all ends
  Dims positions;                               // of blocks, along each dimension
};

absl::StatusOr<ImageBlocks> ReadImageBlocks(const NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr image, context.Ints(1));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr block, context.Ints(2));
  const size_t rank = image->ints.size();
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations,
                        node.Ints("dilations", std::vector<int64_t>(rank, 1)));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                        node.Ints("strides", std::vector<int64_t>(rank, 1)));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                        node.Ints("pads", std::vector<int64_t>(2 * rank, 0)));
  const auto positive = [](const std::vector<int64_t>& numbers) {
    return absl::c_all_of(numbers, [](int64_t number) { return number > 0 && number < 1 << 30; });
  };
  const auto is_pad = [](int64_t pad) { return pad >= 0 && pad < 1 << 30; };
  if (rank < 1 || rank > 5 || block->ints.size() != rank || dilations.size() != rank ||
      strides.size() != rank || pads.size() != 2 * rank || !positive(image->ints) ||
      !positive(block->ints) || !positive(dilations) || !positive(strides) ||
      !absl::c_all_of(pads, is_pad))
    return node.Invalid("image_shape, block_shape, dilations, strides and pads do not fit");
  ImageBlocks blocks;
  blocks.image.assign(image->ints.begin(), image->ints.end());
  blocks.block.assign(block->ints.begin(), block->ints.end());
  blocks.dilations.assign(dilations.begin(), dilations.end());
  blocks.strides.assign(strides.begin(), strides.end());
  blocks.pads.assign(pads.begin(), pads.end());
  for (size_t d = 0; d < rank; ++d) {
    const int64_t padded = blocks.image[d] + pads[d] + pads[rank + d];
    const int64_t reach = dilations[d] * (blocks.block[d] - 1) + 1;
    if (reach > padded) return node.Invalid("a block is larger than the image");
    blocks.positions.push_back((padded - reach) / strides[d] + 1);
  }
  return blocks;
}

// Where each element along dimension d of the image comes from, for the given place in a block.
IndexRuns SourcesOf(const ImageBlocks& blocks, int d, int64_t place) {
  std::vector<int64_t> from(blocks.image[d], -1);
  const int64_t shift = place * blocks.dilations[d] - blocks.pads[d];
  for (int64_t position = 0; position < blocks.positions[d]; ++position) {
    const int64_t at = position * blocks.strides[d] + shift;
    if (at >= 0 && at < blocks.image[d]) from[at] = position;
  }
  return RunsOf(from);
}

// The elements at one place of all blocks, at their places in the image.
absl::StatusOr<ValueId> Spread(NodeContext& context, const Operand& apart,
                               const ImageBlocks& blocks, const Dims& place, int64_t index,
                               const Dims& dims) {
  Select select = WholeOf(apart.dims.size());
  select.from[2] = {{index, 1, 1}};
  const int rank = static_cast<int>(place.size());
  for (int d = 0; d < rank; ++d) select.from[3 + d] = SourcesOf(blocks, d, place[d]);
  const std::string name = absl::StrCat("/place", index);
  ABSL_ASSIGN_OR_RETURN(const Operand spread,
                        SelectOf(context, apart, std::move(select), name + "/spread"));
  ABSL_ASSIGN_OR_RETURN(const Operand image, ReshapeOf(context, spread, dims, name));
  return context.AsValue(image);
}

absl::Status BuildCol2Im(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const ImageBlocks blocks, ReadImageBlocks(context));
  const Dims& src = context.input(0).dims;
  constexpr int64_t kMostPlaces = 4096;
  const std::optional<int64_t> places = ElementCount(blocks.block);
  const std::optional<int64_t> columns = ElementCount(blocks.positions);
  if (!places || *places > kMostPlaces)
    return node.Unimplemented("a block of more than ", kMostPlaces, " elements");
  // Selections list the elements along each dimension, for each place in a block.
  constexpr int64_t kMostListed = int64_t{1} << 21;
  if (absl::c_accumulate(blocks.image, int64_t{0}) > kMostListed / *places)
    return node.Unimplemented("an image of ", DimsToString(blocks.image), " from blocks of ",
                              *places, " elements");
  if (src.size() != 3 || src[1] % *places != 0 || src[2] != columns)
    return node.Invalid("the input ", DimsToString(src), " does not hold blocks of ",
                        DimsToString(blocks.block));
  Dims dims = {src[0], src[1] / *places}, split = dims;
  dims.insert(dims.end(), blocks.image.begin(), blocks.image.end());
  split.push_back(*places);
  split.insert(split.end(), blocks.positions.begin(), blocks.positions.end());
  ABSL_ASSIGN_OR_RETURN(const ValueId given, context.Runtime(0));
  ABSL_ASSIGN_OR_RETURN(const Operand apart,
                        ReshapeOf(context, Operand{nullptr, given, src}, split, "/apart"));
  std::vector<ValueId> images;
  absl::Status status;
  ForEachIndex(blocks.block, [&](const Dims& place) {
    if (!status.ok()) return;
    const int64_t index = static_cast<int64_t>(images.size());
    const auto image = Spread(context, apart, blocks, place, index, dims);
    status = image.status();
    images.push_back(image.value_or(kNoValue));
  });
  ABSL_RETURN_IF_ERROR(status);
  if (images.size() == 1) return context.SetOutput(images[0]);
  return context.SetOutput(context.Emit(network::Sum{}, std::move(images), dims));
}

}  // namespace

TILEWIRE_OPERATORS(Columns) = {
    {"Col2Im", 18, 3, 3, "dilations pads strides", BuildCol2Im, Folds::kNever, LikeFirstInput,
     Inputs({1, 2})},
};

}  // namespace tilewire::reader
