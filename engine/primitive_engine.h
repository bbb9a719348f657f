// SPDX-License-Identifier: Apache-2.0
//
// Single primitives of an engine: create one for a descriptor, execute it on a caller's tensors.
//
//   ABSL_ASSIGN_OR_RETURN(auto found, engine->primitives().GetPrimitive(desc, attributes));
//   ABSL_ASSIGN_OR_RETURN(auto times, engine->primitives().ExecutePrimitive(
//       *found.primitive, inputs, absl::MakeSpan(outputs), {}));
#ifndef ENGINE_PRIMITIVE_ENGINE_H_
#define ENGINE_PRIMITIVE_ENGINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/cache/primitive_cache.h"
#include "engine/memory/memory_desc.h"
#include "engine/model.h"
#include "engine/primitives/primitives.h"

namespace tilewire {

// One tensor of an execution, in any layout.
struct PrimitiveInput {
  int arg = kArgSrc;
  MemoryDesc desc;
  std::vector<absl::string_view> pieces;  // together desc.SizeBytes()
};
struct PrimitiveOutput {
  int arg = kArgDst;
  MemoryDesc desc;
  AlignedBuffer bytes;  // desc.SizeBytes()
};
struct PrimitiveTimes {
  absl::Duration reorder_in, kernel, reorder_out;
};

// Thread-safe.
class PrimitiveEngine {
 public:
  virtual ~PrimitiveEngine() = default;

  // Through the cache, always in user scratchpad mode. Errors are those of CreatePrimitive().
  virtual absl::StatusOr<PrimitiveCache::Found> GetPrimitive(const OpDesc& desc,
                                                             const Attributes& attributes) = 0;

  // Reorders inputs to the layouts that the primitive chose where they differ, executes, and
  // reorders to the layouts of `outputs[i].desc` (`any`: as the primitive wrote it), which fills
  // outputs[i].bytes. A destination that a sum post-op reads is also an input, under its argument.
  //   kInvalidArgument    an argument that is missing, unknown, or of another shape, type or size
  //   kResourceExhausted  memory; outputs larger than `options.max_output_bytes`
  //   what `options.interrupted` returned
  virtual absl::StatusOr<PrimitiveTimes> ExecutePrimitive(const Primitive& primitive,
                                                          absl::Span<const PrimitiveInput> inputs,
                                                          absl::Span<PrimitiveOutput> outputs,
                                                          const RunOptions& options) = 0;

  // The multiplications and additions per second in f32 registers that the threads of one execution
  // can do together, measured now, which takes a few milliseconds; 0 GFLOP/s without AVX2.
  struct Peak {
    double gflops = 0;
    int threads = 0;
  };
  virtual Peak MeasurePeak() const = 0;

  virtual CacheStatistics cache_statistics() const = 0;
};

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVE_ENGINE_H_
