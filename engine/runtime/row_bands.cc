// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/row_bands.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "engine/base/check.h"
#include "engine/primitives/verbose.h"
#include "engine/threading/slots.h"

namespace tilewire::runtime {
namespace {

// Beyond this many threads the gain of one more is small, and each takes a scratchpad.
constexpr int64_t kMostWorkers = 32;

int64_t BytesOfImage(const MemoryDesc& desc) { return desc.stride(0) * SizeOf(desc.data_type()); }

}  // namespace

RowBands::RowBands(std::vector<ArgDesc> args, std::vector<Band> bands, int64_t worker_bytes)
    : args_(std::move(args)),
      bands_(std::move(bands)),
      worker_bytes_(worker_bytes),
      images_(Desc(kArgSrc).dim(0)),
      src_image_(BytesOfImage(Desc(kArgSrc))),
      dst_image_(BytesOfImage(Desc(kArgDst))),
      workers_(std::min(images_ * static_cast<int64_t>(bands_.size()), kMostWorkers)) {}

const MemoryDesc& RowBands::Desc(int arg) const {
  const auto found =
      std::find_if(args_.begin(), args_.end(), [&](const ArgDesc& one) { return one.arg == arg; });
  TILEWIRE_CHECK(found != args_.end(), "a chain has the argument");
  return found->desc;
}

std::vector<const Primitive*> RowBands::Primitives() const {
  std::vector<const Primitive*> primitives;
  absl::flat_hash_set<const Primitive*> seen;
  for (const Band& band : bands_) {
    for (const Part& part : band) {
      if (seen.insert(part.primitive.get()).second) primitives.push_back(part.primitive.get());
    }
  }
  return primitives;
}

int64_t RowBands::code_bytes() const {
  int64_t bytes = 0;
  for (const Primitive* primitive : Primitives()) bytes += primitive->info().code_bytes;
  return bytes;
}

void RowBands::Run(const ExecuteArgs& args, const threading::Team& team) const {
  const int64_t bands = static_cast<int64_t>(bands_.size()), all = images_ * bands;
  std::byte* const scratchpad = args.Get<std::byte>(kArgScratchpad);
  const absl::string_view node = VerboseNode::Current();
  threading::ParallelForInSlots(team, all, workers_, [&](int64_t i, int64_t worker) {
    const VerboseNode named(node);
    RunBand(args, bands_[i % bands], i / bands, scratchpad + worker * worker_bytes_);
  });
}

void RowBands::RunBand(const ExecuteArgs& args, const Band& band, int64_t image,
                       std::byte* scratch) const {
  const std::byte* src = args.Get<const std::byte>(kArgSrc) + image * src_image_;
  for (size_t i = 0; i < band.size(); ++i) {
    const Part& part = band[i];
    const bool last = i + 1 == band.size();
    std::byte* const dst = last ? args.Get<std::byte>(kArgDst) + image * dst_image_ : scratch;
    ExecuteArgs own;
    own.Set(kArgSrc, src + part.src_offset).Set(kArgDst, dst + part.dst_offset);
    const int index = static_cast<int>(i);
    if (const void* weights = args.Find(WeightsOfChain(index)); weights != nullptr)
      own.Set(kArgWeights, weights);
    if (const void* bias = args.Find(BiasOfChain(index)); bias != nullptr) own.Set(kArgBias, bias);
    const absl::Status status = part.primitive->Execute(own, threading::Team::Serial());
    TILEWIRE_CHECK(status.ok(), "the step brings every argument of the chain");
    src = scratch;
  }
}

}  // namespace tilewire::runtime
