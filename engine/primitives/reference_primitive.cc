// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reference_primitive.h"

#include <utility>

#include "engine/memory/zero_padding.h"
#include "engine/threading/ranges.h"

namespace tilewire {
namespace {

int64_t ResultsPerPiece(const Dims& operations) {
  const int64_t each = ElementCount(operations).value_or(kOperationsPerPiece);
  return threading::ItemsAtOnce(kOperationsPerPiece, each);
}

// Immutable.
class ReferencePrimitive final : public Primitive {
 public:
  ReferencePrimitive(PrimitiveInfo info, ReferenceLoop loop,
                     absl::AnyInvocable<void(const ReferencePiece&) const> compute)
      : Primitive(std::move(info)),
        loop_(std::move(loop)),
        compute_(std::move(compute)),
        count_(ElementCount(loop_.results).value_or(0)),  // too many only where one size is 0
        per_piece_(ResultsPerPiece(loop_.operations)) {}

 private:
  absl::Status CheckElements(const ExecuteArgs& args, const threading::Team& team) const override {
    return loop_.check == nullptr ? absl::OkStatus() : loop_.check(args, team);
  }

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    threading::ParallelForRanges(team, count_, per_piece_, [&](int64_t begin, int64_t end) {
      compute_(ReferencePiece(args, loop_.results, begin, end));
    });
    for (const ArgDesc& entry : this->info().args) {
      if (entry.is_output) ZeroPadding(entry.desc, args.Find(entry.arg));
    }
  }

  const ReferenceLoop loop_;
  const absl::AnyInvocable<void(const ReferencePiece&) const> compute_;
  const int64_t count_, per_piece_;  // of results
};

}  // namespace

std::unique_ptr<Primitive> CreateReferencePrimitive(
    PrimitiveInfo info, ReferenceLoop loop,
    absl::AnyInvocable<void(const ReferencePiece&) const> compute) {
  return std::make_unique<ReferencePrimitive>(std::move(info), std::move(loop), std::move(compute));
}

}  // namespace tilewire
