// SPDX-License-Identifier: Apache-2.0
//
// A network lowered to primitives for one set of input shapes: steps over numbered buffers in one
// arena of memory. Immutable once built: any number of threads may execute one plan, each with an
// arena of its own.
#ifndef ENGINE_RUNTIME_PLAN_H_
#define ENGINE_RUNTIME_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/primitive.h"
#include "engine/runtime/row_bands.h"

namespace tilewire::runtime {

// One argument of a step: a buffer of the run, or bytes that never change (packed weights).
struct Binding {
  int arg = kArgSrc;
  int buffer = -1;  // index into Plan::buffers, -1 for a constant
  const void* constant = nullptr;
};
using Bindings = absl::InlinedVector<Binding, 5>;

// Runs a primitive, or a chain of primitives band by band: one of `primitive` and `bands` is set.
struct Step {
  std::string node;    // the ONNX node that it came from
  std::string fused;   // the primitive's post-ops, as PostOps::ToString() writes them
  std::string remark;  // why the step is there, or why no faster primitive is
  std::shared_ptr<const Primitive> primitive;
  std::shared_ptr<const RowBands> bands;
  Bindings bindings;
  int64_t operations = 0;  // multiplications and additions (primitives/execution.cc)

  absl::string_view implementation() const;  // "convolution/avx512_f32_direct"
  const std::vector<ArgDesc>& args() const;
};

// A buffer is needed from the step `first`, which writes it (-1: an input), to the step `last`, the
// last one that reads it (the number of steps: an output).
struct PlanBuffer {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  int64_t offset = 0;                   // in the arena, a multiple of 64
  const std::byte* constant = nullptr;  // not in the arena: bytes that never change
  int persistent = -1;  // not in the arena: a buffer of the run's ParameterStore, by its number
  // A part of another buffer, which has a higher index: it begins `part_offset` bytes into that
  // one, a multiple of 64. -1 for a buffer of its own.
  int part_of = -1;
  int64_t part_offset = 0;
};

// For a request that brings an input in the layout `desc`: the step that reads the input runs this
// primitive, or these bands, instead of its own. The buffer has the same size, the result the same
// bits.
struct InputVariant {
  MemoryDesc desc;
  int step = 0;
  std::shared_ptr<const Primitive> primitive;
  std::shared_ptr<const RowBands> bands;
};

// The row-major layouts in which clients hold a tensor; the two are equal below rank 3.
struct ClientDescs {
  MemoryDesc channels_first, channels_last;
};
//   kInvalidArgument  dims or a type that no descriptor can have
absl::StatusOr<ClientDescs> MakeClientDescs(const Dims& dims, DataType type);

struct PlanInput {
  std::string name;
  int buffer = -1;
  MemoryDesc desc;  // what its first reader wants; requests in other layouts are streamed into it
  ClientDescs client;
  std::vector<InputVariant> variants;
  bool overwritten = false;  // by a step; otherwise the request's own bytes may serve as the buffer
};

// From the layout in the plan to one that a request may ask for.
struct OutputReorder {
  MemoryDesc desc;
  std::shared_ptr<const Primitive> reorder;
};

struct PlanOutput {
  std::string name;
  int buffer = -1;
  MemoryDesc desc;
  ClientDescs client;
  std::vector<OutputReorder> reorders;
  bool is_scalar = false;  // without dimensions in the model, [1] here
};

struct Plan {
  std::vector<Step> steps;
  std::vector<PlanBuffer> buffers;
  std::vector<PlanInput> inputs;
  std::vector<PlanOutput> outputs;
  std::vector<std::shared_ptr<const AlignedBuffer>> constants;  // that bindings point to
  int64_t arena_bytes = 0;
  int64_t scratchpad_bytes = 0;  // the largest of all steps
  int64_t operations = 0;        // of all steps
  int64_t own_bytes = 0;         // of constants that no other plan shares, where they are counted
  bool has_persistent_buffers = false;

  // The buffer itself, or the outermost one that it is a part of.
  int WholeOf(int buffer) const;

  // The bytes that the plan keeps in memory beyond the weights, which all plans of a model share:
  // generated code, an estimate of what describes a step, and own_bytes.
  int64_t HeldBytes() const;
};

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_PLAN_H_
