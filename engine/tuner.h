// SPDX-License-Identifier: Apache-2.0
//
// Makes a faster model of an exact one: which layers compute in 8-bit integers, so that the outputs
// stay within a budget of error. The result is an ONNX file of standard operators, in which
// QuantizeLinear and DequantizeLinear stand around these layers (QDQ).
//
//   ABSL_ASSIGN_OR_RETURN(ErrorBudget budget, ErrorBudget::Parse("top1_changed<=0.5%"));
//   ABSL_ASSIGN_OR_RETURN(TuningResult result,
//                         Tune(engine, "cats.onnx", examples, TuningSpec(budget)));
//   ABSL_RETURN_IF_ERROR(WriteTunedModel(result, "cats_int8.onnx"));
#ifndef ENGINE_TUNER_H_
#define ENGINE_TUNER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/engine.h"
#include "engine/error_budget.h"
#include "engine/model.h"
#include "engine/tuned_answers.h"

namespace tilewire {

struct NamedTensor {
  std::string name;  // of an input
  InputTensor tensor;
};

// The inputs of one run, in any order. The bytes are borrowed.
using TuningExample = std::vector<NamedTensor>;

struct TuningProgress {
  double fraction = 0;  // of the work, as far as it is known
  std::string text;
};

struct TuningSpec {
  explicit TuningSpec(ErrorBudget error_budget) : budget(std::move(error_budget)) {}

  ErrorBudget budget;
  // How many times as fast as the exact model the result has to be, above 1: then that with the
  // least error is looked for which is so fast, and it still has to keep the budget. nullopt: the
  // fastest that keeps the budget.
  std::optional<double> goal;
  // The right class of each example, an index along dimension 1 of the budget's output; empty: not
  // known. With them accuracy is told; it decides nothing but where the budget is of it.
  std::vector<int64_t> labels;
  bool is_made_up = false;  // the examples; the tuning says so
  // Among which each layer gets a precision; int8 alone: all layers that can be are, whatever the
  // budget says.
  bool may_stay_exact = true, may_be_bf16 = false, may_be_int8 = true;
  // Whether the row that each layer takes is chosen by measurement, too.
  bool chooses_rows = false;
  double hold_out = 0.5;  // share of the examples that only the last check sees
  uint64_t seed = 0;      // of which examples these are
  // For measuring, choosing and the last check, which begins early enough. Where it has no room for
  // all examples, as many are left out; less than a second counts as one.
  absl::Duration time = absl::Minutes(5);
  std::string scratch;  // a folder for files that are tried; empty: that of the system
  std::function<void(const TuningProgress&)> progress;  // may be empty
  // Once true, choosing ends, with the best that was found. May be null.
  const std::atomic<bool>* stop = nullptr;
};

enum class TunedPrecision : uint8_t { kExact, kBf16, kInt8 };
// "exact", "bf16", "int8".
absl::string_view NameOf(TunedPrecision precision);

// A layer that can be less exact: a convolution or product with known weights.
struct TunedNode {
  std::string node, op;
  TunedPrecision precision = TunedPrecision::kExact;
  std::string reason;
  std::string input;         // the tensor that it reads
  int largest_weight = 127;  // where it is int8, of its integers, whatever their sign
  float low = 0, high = 0;   // the range of that tensor's integers
  std::string range_method;  // "extremes", "percentile", "squares"
  double error_alone = -1;   // l2, if it alone is int8; -1: not measured
  double bf16_alone = -1;    // the same of bf16
  // The times of its steps in the exact model and in those in which all layers are bf16 or int8;
  // zero: not measured.
  absl::Duration exact_time, bf16_time, int8_time;
  // The row that was measured to be the fastest, and its times of the layer, as it is tuned, before
  // and with it; empty: that of the estimates.
  std::string row;
  absl::Duration row_before, row_after;
};

// An assignment that was measured: its error on the examples of the choice, and its time by the
// times of layers.
struct TriedPoint {
  double error = 0;
  absl::Duration estimate;
  bool is_chosen = false;
};

// An assignment that was timed at the end of the choice, as a whole model and in turns with the
// others: the exact one, those of one precision, and what was chosen layer by layer. All of them
// keep the budget on the examples of the choice.
struct Finalist {
  std::string name;  // "exact", "all bf16", "all int8", "layer by layer"
  absl::Duration time;
  double error = 0;  // of the budget's measure, on the examples of the choice
  double l2 = 0;
  bool is_sure = false;  // with the margins that let other examples keep it, too
  bool is_chosen = false;
};

// The bytes that a model holds while nothing runs (Model::HeldBytes()), and those of one run.
struct ModelMemory {
  int64_t held = 0, activations = 0, scratchpad = 0;
};

struct TuningResult {
  std::vector<TunedNode> nodes;  // in the order of the file
  // On the examples of the choice, and on those held out. If nothing keeps the budget and reaches
  // the goal, these are of the nearest that was found, and all nodes are exact.
  MeasuredError chosen, held_out;
  double predicted_l2 = 0;    // root of the sum of the squares of error_alone; of what is measured
  double chosen_l2 = 0;       // measured, of the whole, on the same examples as `chosen`
  bool keeps_budget = false;  // on the examples of the choice, and on those held out
  bool reaches_goal = true;   // at the last check; true without one
  // The error of a first choice that missed the budget on these examples, or the goal at the last
  // check; then a second one, which is judged on the same examples, kept to half the budget, more
  // surely, and aimed higher. `held_out` is that of the better one.
  std::optional<MeasuredError> first_held_out;
  // The error on these examples of a clearly faster assignment that kept the budget on those of the
  // choice, though not surely enough, and missed it here.
  std::optional<MeasuredError> bolder_held_out;
  // On the examples held out, where each has one class; top1_changed, whatever the budget is of.
  std::optional<MeasuredError> changed_share;
  std::vector<ChangedAnswer> changed;
  std::optional<Accuracy> accuracy;  // on the examples held out, with labels
  bool is_stopped = false, is_out_of_time = false;
  int64_t left_out = 0;                      // examples that the time had no room for
  int64_t tried = 0;                         // assignments whose errors were measured
  int64_t rows_tried = 0;                    // that some layer took
  absl::Duration exact_time, tuned_time;     // medians of runs in turns
  int64_t exact_bytes = 0, tuned_bytes = 0;  // of the files
  ModelMemory exact_memory, tuned_memory;    // of an engine that loads these files
  std::vector<TriedPoint> curve;             // as they were tried; empty without times of layers
  std::vector<Finalist> finalists;           // empty: nothing keeps the budget, or a goal was given
  std::string model;                         // the QDQ file; empty unless is_found()
  std::string tuning;                        // the text of tilewire.tuning; empty unless is_found()

  bool is_found() const { return keeps_budget && reaches_goal; }
};

// kTuningFile in the folder of a model's file.
std::string TuningFileOf(const std::string& model);

// The tuning that lies beside a model's file and is of it; nullopt: there is none. Reads both, and
// makes no plan.
//   kInvalidArgument  it does not fit, as in Engine::LoadModel(); the message begins with the name
//                     of the tuning's file and the line
//   and the errors of reader::OnnxModel::Open
absl::StatusOr<std::optional<TuningFacts>> CheckTuning(const std::string& path);

// Blocks. The same file, examples, spec and CPU give the same ranges and errors; times are measured
// and decide among layers, so that two calls may choose differently.
//   kInvalidArgument    no two examples, an input that is missing, unknown or does not fit, numbers
//                       that are not finite, an output that the budget names and the model does not
//                       have, or that the measure does not fit, an opset below 13, weights in other
//                       files; neither bf16 nor int8 permitted and no rows chosen, rows of a model
//                       whose inputs leave more open than the batch; a goal that is not above 1;
//                       another number of labels than of examples, classes that the output does
//                       not have, a budget of accuracy_drop without labels
//   kFailedPrecondition the model is quantized already, or has no layer that can be int8; bf16 is
//                       permitted, and this CPU or the engine's options have no products of it
//   kResourceExhausted  memory, no space in the scratch folder
//   kDeadlineExceeded   the time has no room for a few examples; the message has a time that does
//   and the errors of Engine::LoadModel() and Model::Run()
absl::StatusOr<TuningResult> Tune(Engine* engine, const std::string& path,
                                  absl::Span<const TuningExample> examples, const TuningSpec& spec);

// The QDQ file, in which layers of bf16 are exact, and the text of the tuning. Each comes to its
// place once it is whole. What is there is replaced.
//   kFailedPrecondition  the result has no model
//   and those of reader::NewFile
absl::Status WriteTunedModel(const TuningResult& result, const std::string& path);
absl::Status WriteTuning(const TuningResult& result, const std::string& path);

}  // namespace tilewire

#endif  // ENGINE_TUNER_H_
