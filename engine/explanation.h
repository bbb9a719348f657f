// SPDX-License-Identifier: Apache-2.0
//
// The arguments and the results of Model::Explain() and LiveProfile(): the steps of a model's
// plan, and where the time of its runs goes. Value types.
#ifndef ENGINE_EXPLANATION_H_
#define ENGINE_EXPLANATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/model.h"

namespace tilewire {

struct ExplainOptions {
  int64_t batch = 1;       // of inputs whose first dimension is open
  std::vector<Dims> dims;  // of every input, in the signature's order; empty: those of the batch
  int runs = 0;            // to time, after one that warms up, on made-up values; 0: no times
  RunOptions limits;       // of the runs; `max_output_bytes` also bounds the inputs
};

// A tensor that a step reads or writes.
struct PlanTensor {
  std::string argument;  // "src"
  std::string layout;    // "f32:1x64x56x56:nChw16c"
  int64_t bytes = 0;     // of its elements and their padding
};

// An implementation that stood before the chosen one or beside it, and why it does not take the
// step.
struct StepRefusal {
  std::string implementation, reason;
  double cycles = 0;  // its estimate, where only that was against it
};

// One step of a plan, or the reorder of an input into it or of an output out of it.
struct PlanStep {
  std::string node;            // ONNX node; "input x", "output y"
  std::string primitive;       // "convolution"; empty for inputs and outputs
  std::string implementation;  // "convolution/avx512_f32_direct"
  bool is_reference = false;   // the plain loops: nothing faster takes it
  std::vector<PlanTensor> tensors;
  std::string fused;   // "sum:1;relu:0"
  std::string remark;  // why the step exists, or why no faster implementation runs it
  // How exactly it multiplies matrices: "exact", "fast" or "bf16", as base/precision.h has them,
  // or "int8"; a chain of several has "+" between them. Empty of steps that multiply none.
  std::string precision;
  std::vector<StepRefusal> refusals;
  double cycles = 0;               // estimated, of a core for one image; 0: no estimate
  std::vector<std::string> dumps;  // files of its generated code, if the server dumps code
  int64_t scratchpad_bytes = 0;
  int64_t operations = 0;  // multiplications and additions of matrix products; else 0
  absl::Duration time;     // median of the runs
};

struct Explanation {
  // Inputs first, outputs last. Where sizes are known only once something is computed: the steps
  // before that, what they give, then a row without tensors for each node or tensor that the rest,
  // which is planned while a request runs, waits for ("stage/late", "stage/known"). Each later
  // stage follows in the same way, for sizes that are made up, or a row that says why it is not
  // known ("stage/made_up", "stage/unknown"). Times are those of the first stage.
  std::vector<PlanStep> steps;
  int64_t activations_bytes = 0, scratchpad_bytes = 0;
  absl::Duration run;      // median of whole runs
  int threads = 0;         // that share a run's work
  double peak_gflops = 0;  // of one such thread, measured beside the runs; 0 without runs
};

// A plan that is kept, and its counted runs since it was made.
struct LivePlan {
  std::vector<Dims> dims;  // of every input of the model
  // It is a later one of the plans that a run goes through (see Explanation::steps), for sizes that
  // were computed.
  bool is_later_stage = false;
  int64_t runs = 0;             // that came to their end
  std::vector<PlanStep> steps;  // as in an Explanation; `time` is the sum of all runs
};

}  // namespace tilewire

#endif  // ENGINE_EXPLANATION_H_
