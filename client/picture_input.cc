// SPDX-License-Identifier: Apache-2.0
#include "client/picture_input.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewire::client {
namespace {

bool HasChannels(int64_t dim) { return dim == 1 || dim == 3; }

absl::Status Unfit(const TensorMetadata& input, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("input '", input.name, "' is ", ShapeText(input.shape), ", ", why));
}

using Shape = std::vector<int64_t>;

// Whether a tensor of this shape may be the input.
bool Fits(const TensorMetadata& input, const Shape& shape) {
  return std::equal(
      input.shape.begin(), input.shape.end(), shape.begin(), shape.end(),
      [](int64_t declared, int64_t given) { return declared < 0 || declared == given; });
}

}  // namespace

absl::StatusOr<PictureInput> PictureInputOf(const TensorMetadata& input, int64_t batch,
                                            int64_t free_size, Layout layout) {
  const size_t rank = input.shape.size();
  const size_t first = rank == 4 ? 1 : 0;  // the dimension after the batch
  if (rank == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", input.name,
                     "' has no shape in the file: an export that says it takes pictures"));
  }
  if (rank < 3 || rank > 4) return Unfit(input, "which no picture fits");
  const bool channels_first = HasChannels(input.shape[first]);
  if (!channels_first && !HasChannels(input.shape[rank - 1]))
    return Unfit(input, "which no picture fits");
  if (rank == 3 && batch != 1)
    return Unfit(input, absl::StrCat("which takes one picture, not a batch of ", batch));
  if (layout == Layout::kNhwc && (rank == 3 || !channels_first))
    return Unfit(input, "which is sent as it is declared, not in nhwc: only [N,C,H,W] has it");

  PictureInput picture;
  picture.tensor = {input.name, input.datatype,
                    ClosedShape(input, rank == 4 ? batch : free_size, free_size), layout, ""};
  std::vector<int64_t>& shape = picture.tensor.shape;
  picture.pictures = rank == 4 ? shape[0] : 1;
  picture.channels = channels_first ? shape[first] : shape[rank - 1];
  picture.height = shape[channels_first ? first + 1 : first];
  picture.width = shape[channels_first ? first + 2 : first + 1];
  picture.samples = channels_first ? layout : Layout::kNhwc;
  if (layout == Layout::kNhwc) std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  return picture;
}

absl::StatusOr<PictureInput> InputOfPicture(const TensorMetadata& input, int64_t channels,
                                            int64_t height, int64_t width, Layout layout) {
  Shape first = {channels, height, width}, last = {height, width, channels};
  if (input.shape.size() == 4) {
    first.insert(first.begin(), 1);
    last.insert(last.begin(), 1);
  }
  const bool channels_first = Fits(input, first);
  if (!channels_first && !Fits(input, last)) {
    return Unfit(input, absl::StrCat("which one picture of ", ShapeText({channels, height, width}),
                                     " does not fit"));
  }
  PictureInput picture = {
      .tensor = {input.name, input.datatype, channels_first ? first : last, Layout::kNchw, ""},
      .channels = channels,
      .height = height,
      .width = width,
      .samples = channels_first ? Layout::kNchw : Layout::kNhwc};
  if (layout == Layout::kNchw) return picture;
  if (!HasBothLayouts(picture)) return Unfit(input, "which is sent as it is declared, not in nhwc");
  picture.tensor.shape = last;
  picture.tensor.layout = picture.samples = Layout::kNhwc;
  return picture;
}

bool HasBothLayouts(const PictureInput& as_declared) {
  return as_declared.tensor.shape.size() == 4 && as_declared.samples == Layout::kNchw;
}

}  // namespace tilewire::client
