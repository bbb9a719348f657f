// SPDX-License-Identifier: Apache-2.0
//
// The engine: loads models (engine/model.h) and gives access to single primitives
// (engine/primitive_engine.h).
//
//   ABSL_ASSIGN_OR_RETURN(auto engine, Engine::Create({}));
//   ABSL_ASSIGN_OR_RETURN(auto model, engine->LoadModel("resnet50.onnx"));
#ifndef ENGINE_ENGINE_H_
#define ENGINE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/diagnostics.h"
#include "engine/cpu/isa.h"
#include "engine/model.h"

namespace tilewire {

namespace threading {
class Arena;
}
class PrimitiveEngine;
struct EngineShared;                        // engine/facade/stage_plans.h
enum class ConvolutionAlgorithm : uint8_t;  // engine/primitives/convolution/convolution.h
enum class Precision : uint8_t;             // engine/base/precision.h

struct EngineOptions {
  cpu::Isa max_isa = cpu::BestIsa();
  int threads = 0;              // 0: the cores this process is granted
  int threads_per_request = 0;  // 0: all of them
  int64_t primitive_cache_bytes = int64_t{64} << 20;
  int64_t plan_bytes = int64_t{128} << 20;  // kept plans of one model
  // The algorithm of convolutions in models, and of single ones whose descriptor leaves it open.
  ConvolutionAlgorithm convolution_algorithm = ConvolutionAlgorithm();  // kAuto
  Precision precision = Precision();  // kExact; of models that are loaded without one of their own
  std::optional<Diagnostics> diagnostics;  // unset: those in force, at first the environment's
};

// The name of a model's tuning (engine/tuner.h, protos/tuning.proto): a file in the folder of the
// model's own, which LoadModel() applies, and refuses where it does not fit. One that names another
// model file of the folder is not of this one.
inline constexpr absl::string_view kTuningFile = "tilewire.tuning";

struct LoadOptions {
  // Called between steps; a status that is not OK ends the load with it. It may wait, so that a
  // load makes way for requests. May be empty.
  std::function<absl::Status()> between_steps;
  // Whether the load stays on the calling thread.
  bool serial = false;
  std::optional<Precision> precision;  // of the model; unset: the engine's
  // Precisions of some nodes, in its place, by the name that steps of plans have (explanation.h).
  std::map<std::string, Precision> node_precisions;
  // The rows that some layers with known weights take, whatever estimates say, by the same names:
  // "convolution/avx2_f32_direct". Only of models whose inputs leave nothing but the batch open.
  std::map<std::string, std::string> node_rows;
  // Where a layer of node_rows is not there, or its row does not take it, estimates choose: for
  // trials. Else that is an error.
  bool tries_rows = false;
  std::string name;          // what log lines call the model; empty: its path
  bool takes_tuning = true;  // applies kTuningFile, if there is one
};

// Counted over all models, since the engine was created.
struct StageCounts {
  int64_t plans = 0;  // that were made for a stage before the last
  int64_t runs = 0;   // of models that are planned in stages
};

// The plans of all models, and what it took to build them since the engine was created.
struct PlanCounts {
  int64_t kept = 0;   // that exist
  int64_t built = 0;  // without those that failed
  absl::Duration building;
};

// Thread-safe.
class Engine {
 public:
  //   kInvalidArgument  options out of range, an instruction set that this CPU does not have, a
  //                     verbose level or dump folder that is not valid
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const EngineOptions& options);
  virtual ~Engine() = default;

  // `path` is an ONNX file. Of one that is tuned (engine/tuner.h), precisions are those of the
  // tuning, whatever the options say, and so are rows, on a CPU of the same features. Errors: those
  // of reader::OnnxModel::Open, of a tuning or of rows that do not fit (kInvalidArgument, with
  // their names), kResourceExhausted, what `options.between_steps` returned.
  virtual absl::StatusOr<std::shared_ptr<const Model>> LoadModel(const std::string& path,
                                                                 const LoadOptions& options) = 0;
  absl::StatusOr<std::shared_ptr<const Model>> LoadModel(const std::string& path) {
    return LoadModel(path, {});
  }

  virtual PrimitiveEngine& primitives() = 0;
  // Returns the memory of past runs that nothing has used for so long to the system. Zero is for
  // times when nothing runs, and takes longer.
  virtual void FreeIdleMemory(absl::Duration /*unused_for*/) {}
  // From now on, buffers of past runs are kept for the next ones only where, together with those in
  // use, they stay within `bytes`.
  virtual void BoundPooledMemory(int64_t /*bytes*/) {}
  // To be told how much more, or less, the caller holds itself within that bound: pooled buffers
  // that nothing uses make way for it.
  virtual void CountBesidePooled(int64_t /*more*/) {}
  virtual StageCounts stage_counts() const { return {}; }
  virtual PlanCounts plan_counts() const { return {}; }
  virtual threading::Arena& arena() = 0;               // for the service's scheduler
  virtual std::shared_ptr<EngineShared> shared() = 0;  // for trainers (engine/trainer.h), or null
  virtual const EngineOptions& options() const = 0;    // with the zeros resolved
};

}  // namespace tilewire

#endif  // ENGINE_ENGINE_H_
