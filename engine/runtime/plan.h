// SPDX-License-Identifier: Apache-2.0
//
// A network lowered to primitives for one set of input shapes: steps over numbered buffers that lie
// in one arena of memory. Immutable once built: any number of threads may execute one plan, each
// with an arena of its own.
#ifndef ENGINE_RUNTIME_PLAN_H_
#define ENGINE_RUNTIME_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/base/aligned_buffer.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

// What a step passes as one argument: a buffer of the run, or bytes that never change (packed
// weights).
struct Binding {
  int arg = kArgSrc;
  int buffer = -1;  // index into Plan::buffers, -1 for a constant
  const void* constant = nullptr;
};
using Bindings = absl::InlinedVector<Binding, 5>;

// What a step needs of the elements it reads, beyond what shapes tell. Asked right before the step
// runs, with its arguments. Immutable.
class SourceCheck {
 public:
  virtual ~SourceCheck() = default;
  // kInvalidArgument  elements that the step has no answer for
  virtual absl::Status Check(const ExecuteArgs& args) const = 0;
};

struct Step {
  std::string node;    // the ONNX node it came from
  std::string fused;   // the primitive's post-ops, as PostOps::ToString() writes them
  std::string remark;  // why it is there, or why nothing faster is
  std::shared_ptr<const Primitive> primitive;
  Bindings bindings;
  int64_t operations = 0;              // multiplications and additions; see step_work.h
  const SourceCheck* check = nullptr;  // the primitive, where it is one
};

// Buffer i is needed from step `first` (written there; -1: an input) to step `last` (the number of
// steps: an output).
struct PlanBuffer {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  int64_t offset = 0;                   // into the arena, a multiple of 64
  const std::byte* constant = nullptr;  // instead of a place in the arena: bytes that never change
  // Instead of a place of its own: these bytes of a buffer with a higher index.
  int part_of = -1;
  int64_t part_offset = 0;  // a multiple of 64
};

// A request whose input comes in the layout `desc` keeps it: the step that reads it runs this
// primitive in place of its own. Same size of the buffer, same bits of the result.
struct InputVariant {
  MemoryDesc desc;
  int step = 0;
  std::shared_ptr<const Primitive> primitive;
};

struct PlanInput {
  std::string name;
  int buffer = -1;
  MemoryDesc
      desc;  // what the first primitive wants: requests in other layouts are streamed into it
  std::vector<InputVariant> variants;
  bool overwritten = false;  // by some step; else a request's own bytes may stand for the buffer
};

// A way from the layout inside to one that a request may ask for.
struct OutputReorder {
  MemoryDesc desc;
  std::shared_ptr<const Primitive> reorder;
};

struct PlanOutput {
  std::string name;
  int buffer = -1;
  MemoryDesc desc;
  std::vector<OutputReorder> reorders;
};

struct Plan {
  std::vector<Step> steps;
  std::vector<PlanBuffer> buffers;
  std::vector<PlanInput> inputs;
  std::vector<PlanOutput> outputs;
  std::vector<std::shared_ptr<const AlignedBuffer>>
      constants;  // keeps alive what the bindings point to
  int64_t arena_bytes = 0;
  int64_t scratchpad_bytes = 0;  // the largest of all steps

  // The buffer that the buffer is a part of, itself if of none.
  int WholeOf(int buffer) const;

  // What it keeps alive beside the weights that all plans of a model share: generated code, and a
  // guess at what describes a step.
  int64_t HeldBytes() const;
};

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_PLAN_H_
