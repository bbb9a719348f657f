// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/element_primitives.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/threading/ranges.h"

namespace tilewire {
namespace {

// The first byte of each source, `element` elements after its first.
template <typename Pointer>
absl::InlinedVector<Pointer, 8> SourcesOf(const PrimitiveInfo& info, const ExecuteArgs& args,
                                          int64_t element) {
  absl::InlinedVector<Pointer, 8> srcs;
  for (const auto& [arg, desc] : info.args) {
    if (arg == kArgDst) continue;
    srcs.push_back(args.Get<const std::byte>(arg) +
                   (desc.offset0() + element) * SizeOf(desc.data_type()));
  }
  return srcs;
}

std::byte* DestinationOf(const MemoryDesc& dst, const ExecuteArgs& args, int64_t element) {
  return args.Get<std::byte>(kArgDst) + (dst.offset0() + element) * SizeOf(dst.data_type());
}

// Immutable.
class DensePrimitive final : public Primitive {
 public:
  DensePrimitive(PrimitiveInfo info, bool stay_zero,
                 std::unique_ptr<const DenseRunGenerator> generator)
      : Primitive(WithCode(std::move(info), *generator)),
        dst_(Desc(kArgDst)),
        zeroes_padding_(!stay_zero && dst_.HasPadding()),
        generator_(std::move(generator)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    constexpr int64_t kElementsAtOnce = DenseRunGenerator::kElementsAtOnce;
    const int64_t count = dst_.PaddedElementCount();
    threading::ParallelForRanges(team, count, kElementsAtOnce, [&](int64_t first, int64_t end) {
      generator_->Run(SourcesOf<const std::byte*>(info(), args, first),
                      DestinationOf(dst_, args, first), end - first);
    });
    if (zeroes_padding_) ZeroPadding(dst_, args.Find(kArgDst));
  }

  const MemoryDesc dst_;
  const bool zeroes_padding_;
  const std::unique_ptr<const DenseRunGenerator> generator_;
};

// Immutable.
class ElementwisePrimitive final : public Primitive {
 public:
  ElementwisePrimitive(PrimitiveInfo info, bool stay_zero, ElementwisePlan plan,
                       std::unique_ptr<const ElementwiseGenerator> generator)
      : Primitive(WithCode(std::move(info), *generator)),
        dst_(Desc(kArgDst)),
        zeroes_padding_(!stay_zero && dst_.HasPadding()),
        plan_(std::move(plan)),
        generator_(std::move(generator)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    if (dst_.ElementCount() == 0) return;
    plan_.Run(generator_->entry<ElementwiseGenerator::Function>(), DestinationOf(dst_, args, 0),
              SourcesOf<const void*>(info(), args, 0), team);
    if (zeroes_padding_) ZeroPadding(dst_, args.Find(kArgDst));
  }

  const MemoryDesc dst_;
  const bool zeroes_padding_;
  const ElementwisePlan plan_;
  const std::unique_ptr<const ElementwiseGenerator> generator_;
};

}  // namespace

std::unique_ptr<Primitive> MakeDensePrimitive(PrimitiveInfo info, bool stay_zero,
                                              std::unique_ptr<const DenseRunGenerator> generator) {
  return std::make_unique<DensePrimitive>(std::move(info), stay_zero, std::move(generator));
}

std::unique_ptr<Primitive> MakeElementwisePrimitive(
    PrimitiveInfo info, bool stay_zero, ElementwisePlan plan,
    std::unique_ptr<const ElementwiseGenerator> generator) {
  return std::make_unique<ElementwisePrimitive>(std::move(info), stay_zero, std::move(plan),
                                                std::move(generator));
}

}  // namespace tilewire
