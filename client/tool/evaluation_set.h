// SPDX-License-Identifier: Apache-2.0
//
// The labelled examples of `tilewire evaluate`: pictures, which are sent in every layout that the
// model's input has, or arrays of any shape, which are sent as they are.
#ifndef CLIENT_TOOL_EVALUATION_SET_H_
#define CLIENT_TOOL_EVALUATION_SET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/image.h"
#include "client/npy.h"
#include "client/tensor.h"
#include "client/training/dataset.h"

namespace tilewire::client {

class EvaluationSet {
 public:
  // `images`: bytes without a header of `shape` ("3x24x20"), .npy, .f32, .s32 or .s64. Bytes of
  // three dimensions are pictures [C, H, W]. `labels`: a byte each, .npy, .s32 or .s64.
  //   kInvalidArgument  files, shapes or numbers of examples that do not fit each other
  //   what reading them fails with
  static absl::StatusOr<EvaluationSet> Read(const std::string& images, const std::string& labels,
                                            const std::string& shape);

  int64_t count() const { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t i) const { return labels_[i]; }

  bool are_pictures() const { return are_pictures_; }
  Image PictureAt(int64_t i) const;  // of pictures

  // Makes arrays what the input takes, before TensorAt().
  //   kInvalidArgument  they do not fit it
  absl::Status FitArrays(const TensorMetadata& input, const Normalization& normalization,
                         bool is_normalized_by_user);
  Tensor TensorAt(int64_t i) const;

 private:
  bool are_pictures_ = false;
  std::string source_;
  NpyArray array_;
  std::vector<int64_t> labels_;
  std::optional<Dataset> fitted_;
  TensorMetadata input_;
};

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_EVALUATION_SET_H_
