// SPDX-License-Identifier: Apache-2.0
//
// Loss and accuracy of a model in training on examples that it is not trained on.
//
//   cross entropy         right: the largest of the scores of a place is that of its class; of
//                         equals the first is taken; places whose label is ignored are not judged
//   binary cross entropy  right: the logit is above 0 where the target is 0.5 or more, else not
//   other losses          know no right and wrong
#ifndef CLIENT_TRAINING_HELD_OUT_H_
#define CLIENT_TRAINING_HELD_OUT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/training/dataset.h"
#include "engine/trainer.h"

namespace tilewire::client {

struct HeldOut {
  double loss = 0;                // sum of all losses, each the mean over what counts in it
  int64_t right = 0, judged = 0;  // places of the output; none are judged by other losses

  double accuracy() const { return static_cast<double>(right) / static_cast<double>(judged); }
};

// The first loss, and the output that it is of; and the other losses, which are not judged.
struct JudgedOutput {
  LossSpec::Kind loss = LossSpec::Kind::kSoftmaxCrossEntropy;
  int index = 0;                        // into ModelSignature::outputs
  std::optional<int64_t> ignore_index;  // LossSpec's, as the next
  std::vector<float> class_weights;
  std::vector<LossSpec> others;

  size_t losses() const { return 1 + others.size(); }
};

// How much the mean of a loss, the first or one after it, over a batch of `examples` counts in that
// over several batches: the weights of the labels that count, or else the examples. 0: it is the
// mean of nothing.
double WeightOf(const BatchTensor& targets, int64_t examples, const JudgedOutput& judged,
                size_t loss = 0);

// `examples` in batches of `batch`, at least one. Errors are Trainer::Evaluate()'s.
//   kInternal  the output or a loss is missing, or the output is of another size than its dims or
//              the target's say
absl::StatusOr<HeldOut> EvaluateHeldOut(const Trainer& trainer, const Dataset& dataset,
                                        absl::Span<const int64_t> examples, int64_t batch,
                                        const JudgedOutput& judged, const RunOptions& options);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_HELD_OUT_H_
