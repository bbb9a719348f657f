// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/primitive_execution.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/reorder/streaming_reorder.h"

namespace tilewire {
namespace {

absl::Status ArgumentError(const Primitive& primitive, int arg, absl::string_view problem) {
  return InvalidArgument(primitive.name(), ": ", ArgName(primitive.kind(), arg), " ", problem);
}

// The tensor a caller gives or asks for is the one the primitive knows, whatever its layout; the
// weights that it packs in bf16 may be of f32.
absl::Status CheckTensor(const Primitive& primitive, int arg, const MemoryDesc& given) {
  const MemoryDesc& wanted = primitive.Desc(arg);
  if (given.dims() != wanted.dims()) {
    return ArgumentError(primitive, arg,
                         absl::StrCat("has shape ", DimsToString(given.dims()), ", not ",
                                      DimsToString(wanted.dims())));
  }
  const bool rounds = arg == kArgWeights && given.data_type() == DataType::kF32 &&
                      wanted.data_type() == DataType::kBf16;
  if (given.data_type() != wanted.data_type() && !rounds) {
    return ArgumentError(primitive, arg,
                         absl::StrCat("has type ", DataTypeName(given.data_type()), ", not ",
                                      DataTypeName(wanted.data_type())));
  }
  return absl::OkStatus();
}

absl::Status CheckInput(const Primitive& primitive, const PrimitiveInput& input) {
  const bool known = !primitive.Desc(input.arg).IsZero();
  const bool read = !primitive.Writes(input.arg) || primitive.info().reads_destination;
  if (!known || !read) return ArgumentError(primitive, input.arg, "is not an input");
  ABSL_RETURN_IF_ERROR(CheckTensor(primitive, input.arg, input.desc));
  if (input.desc.format_kind() != FormatKind::kBlocked) {
    return ArgumentError(primitive, input.arg, "has no layout");
  }
  size_t bytes = 0;
  for (absl::string_view piece : input.pieces) bytes += piece.size();
  if (bytes != static_cast<size_t>(input.desc.SizeBytes())) {
    return ArgumentError(primitive, input.arg,
                         absl::StrCat("has ", bytes, " bytes, not ", input.desc.SizeBytes(),
                                      " for ", input.desc.ToString()));
  }
  return absl::OkStatus();
}

absl::Status CheckOutput(const Primitive& primitive, const PrimitiveOutput& output) {
  if (!primitive.Writes(output.arg)) {
    return ArgumentError(primitive, output.arg, "is not an output");
  }
  if (output.desc.IsZero()) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(CheckTensor(primitive, output.arg, output.desc));
  if (!output.desc.IsAny() && output.desc.Overlaps()) {
    return ArgumentError(primitive, output.arg, "has elements that share an address");
  }
  return absl::OkStatus();
}

template <typename Tensor>
int CountOf(absl::Span<const Tensor> tensors, int arg) {
  int count = 0;
  for (const Tensor& tensor : tensors) count += tensor.arg == arg ? 1 : 0;
  return count;
}

absl::Status CheckArguments(const Primitive& primitive, absl::Span<const PrimitiveInput> inputs,
                            absl::Span<const PrimitiveOutput> outputs) {
  for (const PrimitiveInput& input : inputs) {
    ABSL_RETURN_IF_ERROR(CheckInput(primitive, input));
  }
  for (const PrimitiveOutput& output : outputs) {
    ABSL_RETURN_IF_ERROR(CheckOutput(primitive, output));
  }
  for (const ArgDesc& entry : primitive.info().args) {
    const bool written = entry.is_output;
    const bool read = !written || primitive.info().reads_destination;
    const int given = CountOf(inputs, entry.arg), asked = CountOf(outputs, entry.arg);
    if ((read && given == 0) || (written && asked == 0)) {
      return ArgumentError(primitive, entry.arg,
                           given + asked == 0 ? "is missing"
                           : given == 0       ? "is missing among the inputs: a sum reads it"
                                              : "is missing among the outputs");
    }
    if (given > 1 || asked > 1) return ArgumentError(primitive, entry.arg, "is given twice");
  }
  return absl::OkStatus();
}

absl::Status CheckOutputBytes(const Primitive& primitive, absl::Span<const PrimitiveOutput> outputs,
                              int64_t limit) {
  int64_t bytes = 0;
  for (const PrimitiveOutput& output : outputs) {
    const bool own = output.desc.IsZero() || output.desc.IsAny();
    bytes += (own ? primitive.Desc(output.arg) : output.desc).SizeBytes();
  }
  if (bytes <= limit) return absl::OkStatus();
  return ResourceExhausted("the outputs have ", bytes, " bytes, a message may have ", limit);
}

// The bytes that an execution holds at most: each tensor in the primitive's layout and in the
// caller's.
int64_t ExecutionBytes(const Primitive& primitive, absl::Span<const PrimitiveInput> inputs,
                       absl::Span<const PrimitiveOutput> outputs) {
  int64_t bytes = primitive.ScratchpadDesc().SizeBytes();
  for (const ArgDesc& entry : primitive.info().args) bytes += entry.desc.SizeBytes();
  for (const PrimitiveInput& input : inputs) bytes += input.desc.SizeBytes();
  for (const PrimitiveOutput& output : outputs) {
    if (!output.desc.IsAny()) bytes += output.desc.SizeBytes();
  }
  return bytes;
}

absl::Status Interrupted(const ExecutionResources& resources) {
  return resources.interrupted ? resources.interrupted() : absl::OkStatus();
}

void Gather(absl::Span<const absl::string_view> pieces, std::byte* destination) {
  for (absl::string_view piece : pieces) {
    if (piece.empty()) continue;
    std::memcpy(destination, piece.data(), piece.size());
    destination += piece.size();
  }
}

// Where a layout leaves bytes between elements, no reorder writes them, and no primitive those of a
// workspace: they must not show what the memory held.
void ClearGaps(const MemoryDesc& own, const MemoryDesc& desc, std::byte* bytes) {
  if (desc.SizeBytes() > 0 && (!own.IsDense() || !desc.IsDense() || desc.offset0() != 0)) {
    std::memset(bytes, 0, desc.SizeBytes());
  }
}

// Whether `given`, a caller's tensor, is the memory of `own`. A workspace is opaque to its caller,
// who has its bytes as a tensor of u8.
bool IsMemoryOf(const MemoryDesc& given, const MemoryDesc& own) {
  if (own.format_kind() != FormatKind::kWorkspace || !given.IsPlain()) return given == own;
  return given.IsDense() && given.offset0() == 0;
}

// One execution: holds what was leased until the primitive has run.
class Execution {
 public:
  Execution(const Primitive& primitive, const ExecutionResources& resources)
      : primitive_(primitive), resources_(resources) {}

  // Gives the primitive a buffer with `input` in its layout.
  absl::Status AddInput(const PrimitiveInput& input) {
    ABSL_ASSIGN_OR_RETURN(std::byte * bytes, Lease(primitive_.Desc(input.arg).SizeBytes()));
    args_.Set(input.arg, bytes);
    return Convert(input, primitive_.Desc(input.arg), bytes);
  }

  // Gives the primitive a buffer to write `output` to: the caller's own where the layouts agree.
  absl::Status AddOutput(absl::Span<const PrimitiveInput> inputs, PrimitiveOutput* output) {
    const MemoryDesc& desc = primitive_.Desc(output->arg);
    if (output->desc.IsZero() || output->desc.IsAny()) output->desc = desc;
    const size_t size = output->desc.SizeBytes();
    ABSL_ASSIGN_OR_RETURN(output->bytes, resources_.allocate_output
                                             ? resources_.allocate_output(size)
                                             : AlignedBuffer::Allocate(size));
    ClearGaps(desc, output->desc, output->bytes.data());
    std::byte* bytes = output->bytes.data();
    if (!IsMemoryOf(output->desc, desc)) {
      ABSL_ASSIGN_OR_RETURN(bytes, Lease(desc.SizeBytes()));
    }
    args_.Set(output->arg, bytes);
    for (const PrimitiveInput& input : inputs) {
      if (input.arg == output->arg) return Convert(input, desc, bytes);
    }
    return absl::OkStatus();
  }

  absl::Status Run() { return Run(primitive_, args_); }

  absl::Status ReorderOutput(PrimitiveOutput* output) {
    const MemoryDesc& desc = primitive_.Desc(output->arg);
    if (IsMemoryOf(output->desc, desc)) return absl::OkStatus();
    return Reorder(desc, args_.Find(output->arg), output->desc, output->bytes.data());
  }

 private:
  absl::StatusOr<std::byte*> Lease(int64_t bytes) {
    ABSL_ASSIGN_OR_RETURN(ScratchpadPool::Lease lease, resources_.scratchpads->Take(bytes));
    leases_.push_back(std::move(lease));
    return leases_.back().data();
  }

  absl::Status Convert(const PrimitiveInput& input, const MemoryDesc& desc, std::byte* bytes) {
    // A padded tail that comes from outside may hold anything: only a reorder makes it zero.
    if (IsMemoryOf(input.desc, desc) && !desc.HasPadding()) {
      Gather(input.pieces, bytes);
      return absl::OkStatus();
    }
    if (input.desc.IsPlain() && input.desc.IsDense() && input.desc.offset0() == 0) {
      absl::StatusOr<std::unique_ptr<StreamingReorder>> stream =
          StreamingReorder::Create(input.desc, desc, bytes);
      if (stream.ok()) {
        for (absl::string_view piece : input.pieces) {
          ABSL_RETURN_IF_ERROR((*stream)->Append(piece));
        }
        return (*stream)->Finish();
      }
      if (!absl::IsUnimplemented(stream.status())) return stream.status();
    }
    ABSL_ASSIGN_OR_RETURN(std::byte * gathered, Lease(input.desc.SizeBytes()));
    Gather(input.pieces, gathered);
    return Reorder(input.desc, gathered, desc, bytes);
  }

  absl::Status Reorder(const MemoryDesc& src, const void* src_bytes, const MemoryDesc& dst,
                       void* dst_bytes) {
    Attributes attributes;
    attributes.scratchpad_mode = ScratchpadMode::kUser;
    ABSL_ASSIGN_OR_RETURN(
        PrimitiveCache::Found found,
        resources_.cache->GetOrCreate(ReorderDesc{src, dst}, attributes,
                                      {.max_isa = resources_.max_isa, .only = {}}));
    ExecuteArgs args;
    args.Set(kArgSrc, src_bytes).Set(kArgDst, dst_bytes);
    return Run(*found.primitive, args);
  }

  absl::Status Run(const Primitive& primitive, ExecuteArgs& args) {
    ABSL_ASSIGN_OR_RETURN(ScratchpadPool::Lease scratchpad,
                          resources_.scratchpads->Take(primitive.ScratchpadDesc().SizeBytes()));
    args.Set(kArgScratchpad, scratchpad.data());
    return primitive.Execute(args, resources_.team);
  }

  const Primitive& primitive_;
  const ExecutionResources& resources_;
  ExecuteArgs args_;
  std::vector<ScratchpadPool::Lease> leases_;
};

}  // namespace

absl::StatusOr<PrimitiveTimes> ExecuteWithReorders(const Primitive& primitive,
                                                   absl::Span<const PrimitiveInput> inputs,
                                                   absl::Span<PrimitiveOutput> outputs,
                                                   const ExecutionResources& resources) {
  ABSL_RETURN_IF_ERROR(CheckArguments(primitive, inputs, outputs));
  ABSL_RETURN_IF_ERROR(CheckOutputBytes(primitive, outputs, resources.max_output_bytes));
  if (resources.reserve) {
    ABSL_RETURN_IF_ERROR(resources.reserve(ExecutionBytes(primitive, inputs, outputs)));
  }
  const absl::Time start = absl::Now();
  Execution execution(primitive, resources);
  for (const PrimitiveInput& input : inputs) {
    if (!primitive.Writes(input.arg)) ABSL_RETURN_IF_ERROR(execution.AddInput(input));
  }
  for (PrimitiveOutput& output : outputs) {
    ABSL_RETURN_IF_ERROR(execution.AddOutput(inputs, &output));
  }
  ABSL_RETURN_IF_ERROR(Interrupted(resources));
  const absl::Time ready = absl::Now();
  ABSL_RETURN_IF_ERROR(execution.Run());
  ABSL_RETURN_IF_ERROR(Interrupted(resources));
  const absl::Time done = absl::Now();
  for (PrimitiveOutput& output : outputs) {
    ABSL_RETURN_IF_ERROR(execution.ReorderOutput(&output));
  }
  ABSL_RETURN_IF_ERROR(Interrupted(resources));
  return PrimitiveTimes{ready - start, done - ready, absl::Now() - done};
}

}  // namespace tilewire
