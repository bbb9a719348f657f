// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/checked_math.h"
#include "engine/primitives/reorder/reorder.h"

namespace tilewire {
namespace {

constexpr int64_t kCacheLine = 64;

using PrimitivePtr = std::shared_ptr<const Primitive>;

// A tensor that the inner primitive finds elsewhere than its caller has it.
struct Moved {
  int arg = 0;
  int64_t offset = 0;  // of its copy in the scratchpad, in bytes
  PrimitivePtr in;     // null for a result that is written only
  PrimitivePtr out;    // null for what is read only
};

struct Moves {
  std::vector<Moved> tensors;
  int64_t stages_offset = 0;     // in the scratchpad: what one stage at a time needs for itself
  int64_t scratchpad_bytes = 0;  // in all
  int64_t code_bytes = 0;
};

absl::StatusOr<PrimitivePtr> Reorder(const MemoryDesc& from, const MemoryDesc& to, cpu::Isa isa) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  return CreateReorder({.src = from, .dst = to}, attributes, {.max_isa = isa});
}

class MovesPlanner {
 public:
  MovesPlanner(const Primitive& inner, cpu::Isa isa) : inner_(inner), isa_(isa) { Add(inner); }

  absl::Status Move(const ArgDesc& outer) {
    const MemoryDesc& wanted = inner_.Desc(outer.arg);
    if (outer.desc == wanted) return absl::OkStatus();
    Moved moved{.arg = outer.arg, .offset = moves_.stages_offset};
    const bool is_output = outer.is_output;
    if (!is_output || inner_.info().reads_destination) {
      ABSL_ASSIGN_OR_RETURN(moved.in, Reorder(outer.desc, wanted, isa_));
      Add(*moved.in);
    }
    if (is_output) {
      ABSL_ASSIGN_OR_RETURN(moved.out, Reorder(wanted, outer.desc, isa_));
      Add(*moved.out);
    }
    const std::optional<int64_t> end = CheckedAdd(moved.offset, wanted.SizeBytes());
    if (!end || !CheckedAdd(*end, kCacheLine))
      return ResourceExhausted("the scratchpad for reordered tensors is too large");
    moves_.stages_offset = RoundUp(*end, kCacheLine);
    moves_.tensors.push_back(std::move(moved));
    return absl::OkStatus();
  }

  absl::StatusOr<Moves> Finish() && {
    const std::optional<int64_t> bytes = CheckedAdd(moves_.stages_offset, most_of_a_stage_);
    if (!bytes) return ResourceExhausted("the scratchpad for reordered tensors is too large");
    moves_.scratchpad_bytes = *bytes;
    return std::move(moves_);
  }

 private:
  void Add(const Primitive& stage) {
    most_of_a_stage_ = std::max(most_of_a_stage_, stage.info().scratchpad_bytes);
    moves_.code_bytes += stage.info().code_bytes;
  }

  const Primitive& inner_;
  const cpu::Isa isa_;
  Moves moves_;
  int64_t most_of_a_stage_ = 0;
};

// The images of src and dst that the inner primitive computes at a time.
struct Turns {
  int64_t count = 1;
  int64_t src_step = 0, dst_step = 0;  // from turn to turn, in bytes

  // `args`, those of all turns, for one.
  ExecuteArgs ArgsOf(const ExecuteArgs& args, int64_t turn) const {
    ExecuteArgs its = args;
    if (turn == 0) return its;
    its.Set(kArgSrc, args.Get<const std::byte>(kArgSrc) + turn * src_step);
    its.Set(kArgDst, args.Get<std::byte>(kArgDst) + turn * dst_step);
    return its;
  }
};

// Immutable.
class BetweenReorders final : public Primitive {
 public:
  BetweenReorders(PrimitiveInfo info, PrimitivePtr inner, Moves moves, const Turns& turns)
      : Primitive(std::move(info)),
        inner_(std::move(inner)),
        moves_(std::move(moves)),
        turns_(turns) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    for (int64_t turn = 0; turn < turns_.count; ++turn)
      RunTurn(turns_.ArgsOf(args, turn), scratchpad, team);
  }

  void RunTurn(const ExecuteArgs& args, std::byte* scratchpad, const threading::Team& team) const {
    std::byte* const stages = scratchpad + moves_.stages_offset;
    ExecuteArgs inside = args;
    for (const Moved& moved : moves_.tensors) {
      std::byte* const copy = scratchpad + moved.offset;
      if (moved.in != nullptr) Move(*moved.in, args.Find(moved.arg), copy, stages, team);
      inside.Set(moved.arg, copy);
    }
    ExecuteStage(*inner_, inside, stages, team);
    for (const Moved& moved : moves_.tensors) {
      if (moved.out == nullptr) continue;
      Move(*moved.out, scratchpad + moved.offset, args.Find(moved.arg), stages, team);
    }
  }

  static void Move(const Primitive& reorder, const void* from, void* to, std::byte* stages,
                   const threading::Team& team) {
    ExecuteArgs args;
    args.Set(kArgSrc, from).Set(kArgDst, to);
    ExecuteStage(reorder, args, stages, team);
  }

  const PrimitivePtr inner_;
  const Moves moves_;
  const Turns turns_;
};

bool HasBatch(int arg) { return arg == kArgSrc || arg == kArgDst; }

Turns TurnsOf(absl::Span<const ArgDesc> args, int64_t images) {
  Turns turns;
  for (const auto& [arg, desc, is_output] : args) {
    if (!HasBatch(arg)) continue;
    TILEWIRE_CHECK(images > 0 && desc.dim(0) % images == 0, "the images divide the batch");
    turns.count = desc.dim(0) / images;
    (arg == kArgSrc ? turns.src_step : turns.dst_step) =
        images * desc.stride(0) * SizeOf(desc.data_type());
  }
  return turns;
}

}  // namespace

void ExecuteStage(const Primitive& stage, ExecuteArgs& args, std::byte* scratchpad,
                  const threading::Team& team) {
  args.Set(kArgScratchpad, scratchpad);
  (void)stage.Execute(args, team);  // has all its arguments, and so cannot fail
}

absl::StatusOr<MemoryDesc> FirstImages(const MemoryDesc& desc, int64_t images) {
  Dims dims = desc.dims();
  dims[0] = images;
  return desc.SubMemory(dims, Dims(dims.size(), 0));
}

absl::StatusOr<std::unique_ptr<Primitive>> WrapInReorders(PrimitiveInfo info, PrimitivePtr inner,
                                                          std::optional<int64_t> images) {
  MovesPlanner planner(*inner, info.isa);
  for (ArgDesc outer : info.args) {
    if (images && HasBatch(outer.arg)) {
      ABSL_ASSIGN_OR_RETURN(outer.desc, FirstImages(outer.desc, *images));
    }
    ABSL_RETURN_IF_ERROR(planner.Move(outer));
  }
  ABSL_ASSIGN_OR_RETURN(Moves moves, std::move(planner).Finish());
  const Turns turns = images ? TurnsOf(info.args, *images) : Turns();
  info.isa = inner->info().isa;
  info.traits.bits_depend_on_position |= inner->info().traits.bits_depend_on_position;
  info.scratchpad_bytes = moves.scratchpad_bytes;
  info.code_bytes = moves.code_bytes;
  return std::make_unique<BetweenReorders>(std::move(info), std::move(inner), std::move(moves),
                                           turns);
}

}  // namespace tilewire
