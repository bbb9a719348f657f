// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/dense_primitive.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/checked_math.h"
#include "engine/memory/zero_padding.h"

namespace tilewire {
namespace {

PrimitiveInfo WithCodeOf(const DenseRunGenerator& generator, PrimitiveInfo info) {
  info.code_bytes = static_cast<int64_t>(generator.code_bytes());
  return info;
}

// Immutable.
class DensePrimitive final : public Primitive {
 public:
  DensePrimitive(PrimitiveInfo info, bool stay_zero,
                 std::unique_ptr<const DenseRunGenerator> generator)
      : Primitive(WithCodeOf(*generator, std::move(info))),
        count_(Desc(kArgDst).PaddedElementCount()),
        zeroes_padding_(!stay_zero && Desc(kArgDst).HasPadding()),
        generator_(std::move(generator)) {}

 private:
  static constexpr int64_t kElementsAtOnce = DenseRunGenerator::kElementsAtOnce;

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    team.ParallelFor(DivUp(count_, kElementsAtOnce), [&](int64_t piece) {
      const int64_t first = piece * kElementsAtOnce;
      const auto at = [first](const MemoryDesc& desc) {
        return (desc.offset0() + first) * SizeOf(desc.data_type());
      };
      absl::InlinedVector<const std::byte*, 8> srcs;
      for (const auto& [arg, desc] : info().args) {
        if (arg != kArgDst) srcs.push_back(args.Get<const std::byte>(arg) + at(desc));
      }
      generator_->Run(srcs, args.Get<std::byte>(kArgDst) + at(Desc(kArgDst)),
                      std::min(kElementsAtOnce, count_ - first));
    });
    if (zeroes_padding_) ZeroPadding(Desc(kArgDst), args.Find(kArgDst));
  }

  const int64_t count_;
  const bool zeroes_padding_;
  const std::unique_ptr<const DenseRunGenerator> generator_;
};

}  // namespace

std::unique_ptr<Primitive> MakeDensePrimitive(PrimitiveInfo info, bool stay_zero,
                                              std::unique_ptr<const DenseRunGenerator> generator) {
  return std::make_unique<DensePrimitive>(std::move(info), stay_zero, std::move(generator));
}

}  // namespace tilewire
