// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include <utility>

#include "engine/primitives/softmax/implementations.h"

namespace tilewire::softmax {
namespace {

// The tensors plain, with the axis innermost: what the other rows take from any layout.
absl::StatusOr<std::vector<SoftmaxDesc>> WithRows(const SoftmaxDesc& desc) {
  std::string pattern(PlainPattern(desc.src.rank()));
  const char axis = pattern[desc.axis];
  pattern.erase(desc.axis, 1);
  pattern.push_back(axis);
  SoftmaxDesc rows = desc;
  ABSL_ASSIGN_OR_RETURN(rows.src,
                        MemoryDesc::CreatePattern(desc.src.dims(), desc.src.data_type(), pattern));
  ABSL_ASSIGN_OR_RETURN(rows.dst,
                        MemoryDesc::CreatePattern(desc.dst.dims(), desc.dst.data_type(), pattern));
  return std::vector<SoftmaxDesc>{std::move(rows)};
}

}  // namespace

absl::StatusOr<SoftmaxDesc> ResolveReordered(const Request<SoftmaxDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const SoftmaxDesc like_src, ResolveReference(request));
  return ResolveBetweenReorders(SoftmaxImplementations(), WithRows(like_src),
                                request.With(like_src));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(const Request<SoftmaxDesc>& request) {
  return CreateBetweenReorders(SoftmaxImplementations(), WithRows(request.desc), request);
}

}  // namespace tilewire::softmax
