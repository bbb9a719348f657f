// SPDX-License-Identifier: Apache-2.0
//
// A model's file as its tuning has it (protos/tuning.proto): with the conversions and the integers
// of the layers that are int8, the same bytes as the QDQ file of that tuning, and with the
// precisions of the others. Pure functions of files; thread-safe.
#ifndef ENGINE_TUNING_TUNED_SOURCE_H_
#define ENGINE_TUNING_TUNED_SOURCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/precision.h"
#include "engine/model.h"
#include "engine/onnx/onnx_model.h"
#include "engine/tuning/model_source.h"
#include "protos/tuning.pb.h"

namespace tilewire::tuning {

struct TunedSource {
  std::shared_ptr<const reader::OnnxModel> model;
  std::map<std::string, Precision> precisions;  // LoadOptions::node_precisions: of all layers
  std::map<std::string, std::string> rows;      // LoadOptions::node_rows, on such a CPU
  int64_t held_bytes = 0;                       // of the file, where it is kept in memory
  TuningFacts facts;
};

// The lines of a tuning's text, from 1, for messages. Empty vectors: the text is not known.
struct TuningLines {
  int file = 0;                      // that the file it is of begins at
  std::vector<int> layers, tensors;  // of each
};

// A tuning's text. `lines` may be null.
//   kInvalidArgument  the text does not parse; the message has the line
absl::StatusOr<tuned::ModelTuning> ParseTuning(const std::string& text,
                                               TuningLines* lines = nullptr);
std::string TextOf(const tuned::ModelTuning& tuning);

// The bytes of the tuned file; `precisions` as above.
//   kInvalidArgument  a tuning of another file; a layer or tensor that the file does not have or
//                     that is there twice, no precision, ranges that are not finite or do not hold
//                     0, a layer of int8 whose input has no range; and those of FindLayers() and
//                     QdqWriter; the message begins with the line, where `lines` has it
absl::StatusOr<std::string> ApplyTuning(const tuned::ModelTuning& tuning, const ModelSource& source,
                                        std::map<std::string, Precision>* precisions,
                                        const TuningLines& lines = {});

// The model of the file at `path` with the tuning that lies beside it; nullopt: none does, or the
// one that does names another file that lies there, too. Errors: those above, of ModelSource and of
// OnnxModel, each after the name of the tuning's file where that is at fault.
absl::StatusOr<std::optional<TunedSource>> OpenTuned(const std::string& path);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_TUNED_SOURCE_H_
