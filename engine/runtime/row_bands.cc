// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/row_bands.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "engine/base/check.h"
#include "engine/base/checked_math.h"
#include "engine/primitives/verbose.h"
#include "engine/threading/slots.h"
#include "engine/threading/stop.h"

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
  const auto add = [&](const Part& part) {
    const Primitive* primitive = part.primitive.get();
    if (primitive != nullptr && seen.insert(primitive).second) primitives.push_back(primitive);
  };
  for (const Band& band : bands_) {
    absl::c_for_each(band.alone, add);
    absl::c_for_each(band.next, add);
  }
  return primitives;
}

int64_t RowBands::code_bytes() const {
  int64_t bytes = 0;
  for (const Primitive* primitive : Primitives()) bytes += primitive->info().code_bytes;
  return bytes;
}

// One thread computes neighbouring bands for as long as there are others to do the rest.
int64_t RowBands::RunsOfImage(int threads) const {
  if (threads == 1) return 1;
  return std::min<int64_t>(bands_.size(), DivUp(2 * threads, images_));
}

void RowBands::Run(const ExecuteArgs& args, const threading::Team& team) const {
  if (images_ == 0) return;
  const std::vector<Range> runs = SplitEvenly(bands_.size(), RunsOfImage(team.threads()));
  const int64_t count = static_cast<int64_t>(runs.size());
  std::byte* const scratchpad = args.Get<std::byte>(kArgScratchpad);
  const absl::string_view node = VerboseNode::Current();
  threading::ParallelForInSlots(team, images_ * count, workers_, [&](int64_t i, int64_t worker) {
    const VerboseNode named(node);
    RunBands(args, i / count, runs[i % count], scratchpad + worker * worker_bytes_);
  });
}

void RowBands::RunBands(const ExecuteArgs& args, int64_t image, const Range& range,
                        std::byte* scratch) const {
  for (int64_t i = 0; i < range.size && !threading::Stopped(); ++i) {
    const Band& band = bands_[range.begin + i];
    if (i == 0) {
      RunParts(args, band.alone, image, scratch);
      continue;
    }
    for (const KeptRows& rows : band.kept) {
      for (int64_t block = 0; block < rows.blocks; ++block) {
        std::byte* const begin = scratch + block * rows.step;
        std::memmove(begin + rows.to, begin + rows.from, rows.bytes);
      }
    }
    RunParts(args, band.next, image, scratch);
  }
}

void RowBands::RunParts(const ExecuteArgs& args, absl::Span<const Part> parts, int64_t image,
                        std::byte* scratch) const {
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (part.primitive == nullptr) continue;
    const bool first = i == 0, last = i + 1 == parts.size();
    const std::byte* const src =
        first ? args.Get<const std::byte>(kArgSrc) + image * src_image_ : scratch;
    std::byte* const dst = last ? args.Get<std::byte>(kArgDst) + image * dst_image_ : scratch;
    ExecuteArgs own;
    own.Set(kArgSrc, src + part.src_offset).Set(kArgDst, dst + part.dst_offset);
    const int index = static_cast<int>(i);
    if (const void* weights = args.Find(WeightsOfChain(index)); weights != nullptr)
      own.Set(kArgWeights, weights);
    if (const void* bias = args.Find(BiasOfChain(index)); bias != nullptr) own.Set(kArgBias, bias);
    const absl::Status status = part.primitive->Execute(own, threading::Team::Serial());
    TILEWIRE_CHECK(status.ok(), "the step brings every argument of the chain");
  }
}

}  // namespace tilewire::runtime
