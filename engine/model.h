// SPDX-License-Identifier: Apache-2.0
//
// A loaded model: its signature, and running it.
//
//   ABSL_ASSIGN_OR_RETURN(auto model, engine->LoadModel("resnet50.onnx"));
//   ABSL_ASSIGN_OR_RETURN(auto outputs, model->Run(inputs, {}, {}));
#ifndef ENGINE_MODEL_H_
#define ENGINE_MODEL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/memory/tensor_spec.h"

namespace tilewire {

class LongestSteps;     // engine/longest_steps.h
struct ExplainOptions;  // engine/explanation.h
struct Explanation;
struct LivePlan;

// Where the channels of a [N, C, spatial...] tensor stand in memory, and in a shape that a client
// gives.
enum class Layout : uint8_t { kNchw = 0, kNhwc = 1 };

struct ModelSignature {
  std::vector<TensorSpec> inputs, outputs;
};

// The bytes of one input, row-major in `layout`, in any number of pieces, which may cut an element.
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
  // Called between steps; a status that is not OK ends the run with it (kCancelled,
  // kDeadlineExceeded).
  std::function<absl::Status()> interrupted;
  // Once true, a running step ends early; `interrupted` must then return the reason. May be null.
  const std::atomic<bool>* stop = nullptr;
  // Outputs of more bytes in total are refused before any work.
  int64_t max_output_bytes = std::numeric_limits<int64_t>::max();
  // Called before any memory is taken, with what the run will hold: activations, scratchpad and
  // outputs. Where sizes are known only once something is computed, it is called again with what
  // has to be added. A status that is not OK ends the run with it. May be empty.
  std::function<absl::Status(int64_t bytes)> reserve;
  // Gives the memory of an output, exactly `bytes`. Empty: it comes from the system.
  std::function<absl::StatusOr<AlignedBuffer>(size_t bytes)> allocate_output;
  // Whether the run stays on the calling thread.
  bool serial = false;
  // Where not null: the time that goes into reading inputs into the layouts of the first steps and
  // writing outputs in those of the requests is added to it. Otherwise it is not measured.
  absl::Duration* reorder_time = nullptr;
  // Whether LiveProfile() counts the run. Runs that no request asked for are not to be counted.
  bool is_counted = true;
  // Where not null: keeps the longest steps of the run, of all its stages. Otherwise they are not
  // looked for.
  LongestSteps* longest_steps = nullptr;
};

// The tuning that a model was loaded with (engine/tuner.h).
struct TuningFacts {
  std::string budget;          // "l2<=0.03"
  std::string held_out_error;  // "1.10e-02 of 12 examples"
  int64_t exact_layers = 0, bf16_layers = 0, int8_layers = 0;
  int64_t rows = 0;                       // layers whose row it names
  std::vector<std::string> cpu_features;  // of the CPU that it was measured on
};

// Immutable: any number of threads may call Run() on one model. Results do not depend on batch
// size, threads or load.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelSignature& signature() const = 0;

  // Takes `inputs` in the signature's order and returns one result per requested output, in the
  // order of the requests. No requests: all outputs, nchw.
  //   kInvalidArgument     dims that do not fit the signature, sizes that do not fit dims
  //   kFailedPrecondition  the model's file was written to since it was loaded, and these dims need
  //                        more of it: the model has to be loaded again
  //   kResourceExhausted   memory; outputs larger than `options.max_output_bytes`
  //   what `options.interrupted` returned
  virtual absl::StatusOr<std::vector<OutputTensor>> Run(absl::Span<const InputTensor> inputs,
                                                        absl::Span<const OutputRequest> outputs,
                                                        const RunOptions& options) const = 0;

  // The multiplications and additions of a run with inputs of these dims, which fit the signature;
  // nullopt until there is a plan for them, which their first run makes. Does not wait.
  virtual std::optional<int64_t> PlannedOperations(absl::Span<const InputTensor> inputs) const = 0;

  // A hash of what the plan of a run is made for: the dims, and the elements of inputs that decide
  // shapes.
  virtual uint64_t PlanHash(absl::Span<const InputTensor> inputs) const = 0;

  // Whether the time of a run depends on more than that: a loop runs until something that is
  // computed ends it.
  virtual bool TimeVaries() const = 0;

  // The plan for these input dims, and where the time of its runs goes.
  //   kInvalidArgument    dims that do not fit the signature
  //   kResourceExhausted  memory; inputs or outputs larger than the limits allow
  //   what `options.limits.interrupted` returned
  virtual absl::StatusOr<Explanation> Explain(const ExplainOptions& options) const = 0;
  // Where the time of counted runs went so far, for each plan that is kept, the last used first.
  // Does not wait for runs, which go on meanwhile.
  virtual std::vector<LivePlan> LiveProfile() const = 0;
  virtual int64_t weights_bytes() const = 0;                     // as they are in the file
  virtual const TuningFacts* tuning() const { return nullptr; }  // null: it has none
  // The memory that it holds while nothing runs, with the plans for the shapes so far.
  virtual int64_t HeldBytes() const = 0;

  // The dims of the inputs that there are plans for, the last used first; those of models whose
  // shapes depend on elements are not known.
  virtual std::vector<std::vector<Dims>> PlannedShapes() const { return {}; }

  // Whether all that further dims may need of the model's files is as it was when it was loaded:
  // Run() then never fails with kFailedPrecondition. May read the weights again.
  //   kFailedPrecondition  a file was written to
  //   kResourceExhausted   memory
  virtual absl::Status CheckFiles() const = 0;

  // To be called by the last one that holds the model, before it drops it: gives the memory of its
  // large tensors back to the system in pieces of 4 MB, and calls `between` after each, which may
  // wait. From then on nothing may run.
  virtual void Release(absl::FunctionRef<void()> /*between*/) const {}
};

}  // namespace tilewire

#endif  // ENGINE_MODEL_H_
