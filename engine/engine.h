// SPDX-License-Identifier: Apache-2.0
//
// The engine's facade: load a model and run it; create a primitive and execute it. The service
// includes this header, engine/memory and nothing else of the engine.
//
//   ABSL_ASSIGN_OR_RETURN(auto engine, Engine::Create({}));
//   ABSL_ASSIGN_OR_RETURN(auto model, engine->LoadModel("resnet50.onnx"));
//   ABSL_ASSIGN_OR_RETURN(auto outputs, model->Run(inputs, {}, {}));
#ifndef ENGINE_ENGINE_H_
#define ENGINE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/cache/primitive_cache.h"
#include "engine/cpu/isa.h"
#include "engine/explanation.h"
#include "engine/memory/memory_desc.h"
#include "engine/memory/tensor_spec.h"
#include "engine/primitives/primitives.h"
#include "engine/threading/arena.h"

namespace tilewire {

// Where the channels of a [N, C, spatial...] tensor stand in memory and in a shape that a client
// gives.
enum class Layout : uint8_t { kNchw = 0, kNhwc = 1 };

struct ModelSignature {
  std::vector<TensorSpec> inputs, outputs;
};

// Bytes of one input, row-major in `layout`, in any number of pieces (they may cut an element).
struct InputTensor {
  Dims dims;  // logical order [N, C, spatial...], whatever the layout
  Layout layout = Layout::kNchw;
  std::vector<absl::string_view> pieces;
};

struct OutputRequest {
  int index = 0;  // into ModelSignature::outputs
  Layout layout = Layout::kNchw;
};

// Row-major in `layout`; bytes.size() is exactly the tensor's size.
struct OutputTensor {
  int index = 0;
  Dims dims;  // logical order
  Layout layout = Layout::kNchw;
  AlignedBuffer bytes;
};

struct RunOptions {
  // Asked between steps; a status that is not OK ends the run with it (kCancelled,
  // kDeadlineExceeded).
  std::function<absl::Status()> interrupted;
  // Once true, a step that is running ends early; `interrupted` must then say why. May be null.
  const std::atomic<bool>* stop = nullptr;
  // An answer of more bytes is refused before any work.
  int64_t max_output_bytes = std::numeric_limits<int64_t>::max();
  // Asked once, before any memory is taken, for what the run will hold: activations, scratchpad and
  // answer. A status that is not OK ends the run with it. May be empty.
  std::function<absl::Status(int64_t bytes)> reserve;
  // The run keeps to the calling thread.
  bool serial = false;
};

struct ExplainOptions {
  int64_t batch = 1;       // of inputs whose first dimension is open
  std::vector<Dims> dims;  // of every input, in the signature's order; empty: those of the batch
  int runs = 0;       // that are timed, after one that warms up, on made-up values; 0: no times
  RunOptions limits;  // of the runs; `max_output_bytes` also bounds the inputs
};

// Immutable: any number of threads may Run() one model. Results do not depend on batch size,
// threads or load.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelSignature& signature() const = 0;

  // `inputs` in the signature's order; `outputs` empty means all, nchw. A result entry per
  // requested output, in order.
  //   kInvalidArgument    dims that do not fit the signature, sizes that do not fit dims
  //   kResourceExhausted  memory; an answer larger than `options.max_output_bytes`
  //   what `options.interrupted` returned
  virtual absl::StatusOr<std::vector<OutputTensor>> Run(absl::Span<const InputTensor> inputs,
                                                        absl::Span<const OutputRequest> outputs,
                                                        const RunOptions& options) const = 0;

  // The plan for these input dims, and where the time of its runs goes.
  //   kInvalidArgument    dims that do not fit the signature
  //   kResourceExhausted  memory; inputs or outputs larger than the limits allow
  //   what `options.limits.interrupted` returned
  virtual absl::StatusOr<Explanation> Explain(const ExplainOptions& options) const = 0;
  virtual int64_t weights_bytes() const = 0;
};

struct EngineOptions {
  cpu::Isa max_isa = cpu::BestIsa();
  int threads = 0;              // 0: the cores this process is granted
  int threads_per_request = 0;  // 0: all of them
  int64_t primitive_cache_bytes = int64_t{64} << 20;
  // What convolutions of models, and primitives that leave it open, are computed by.
  ConvolutionAlgorithm convolution_algorithm = ConvolutionAlgorithm::kAuto;
};

// A tensor of a primitive's execution: a pointer's worth of bytes in any layout.
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
class Engine {
 public:
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const EngineOptions& options);
  virtual ~Engine() = default;

  // `path` is an ONNX file. Errors: those of graph::OnnxModel::Open, kResourceExhausted.
  virtual absl::StatusOr<std::shared_ptr<const Model>> LoadModel(const std::string& path) = 0;

  // Through the cache, always in user scratchpad mode.
  virtual absl::StatusOr<PrimitiveCache::Found> GetPrimitive(const OpDesc& desc,
                                                             const Attributes& attributes) = 0;

  // Reorders inputs to the layouts the primitive chose where they differ, executes, reorders to the
  // layouts asked for
  // (`outputs[i].desc`; `any`: as the primitive wrote it) and fills outputs[i].bytes. A destination
  // that a sum post-op reads is given as an input under its own argument.
  //   kInvalidArgument    an argument that is missing, unknown, or of another shape, type or size
  //   kResourceExhausted  memory; an answer larger than `options.max_output_bytes`
  //   what `options.interrupted` returned
  virtual absl::StatusOr<PrimitiveTimes> ExecutePrimitive(const Primitive& primitive,
                                                          absl::Span<const PrimitiveInput> inputs,
                                                          absl::Span<PrimitiveOutput> outputs,
                                                          const RunOptions& options) = 0;

  // Gives the memory of past runs back to the system: for when nothing has run for a while.
  virtual void FreeIdleMemory() {}

  virtual CacheStatistics cache_statistics() const = 0;
  virtual threading::Arena& arena() = 0;             // for the service's scheduler
  virtual const EngineOptions& options() const = 0;  // with the zeros resolved
};

}  // namespace tilewire

#endif  // ENGINE_ENGINE_H_
