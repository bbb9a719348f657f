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

absl::StatusOr<SoftmaxDesc> ResolveReordered(const SoftmaxDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const SoftmaxDesc like_src, ResolveReference(desc, attributes, facts));
  ABSL_ASSIGN_OR_RETURN(const std::vector<SoftmaxDesc> ways, WithRows(like_src));
  return ResolveBetweenReorders<SoftmaxDesc>(SoftmaxImplementations(), like_src, ways, attributes,
                                             facts);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(const SoftmaxDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<SoftmaxDesc> ways, WithRows(desc));
  return CreateBetweenReorders<SoftmaxDesc>(SoftmaxImplementations(), desc, ways, attributes,
                                            facts);
}

}  // namespace tilewire::softmax
