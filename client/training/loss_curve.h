// SPDX-License-Identifier: Apache-2.0
//
// How the loss went in a run of training, as points and as characters. Pure functions.
#ifndef CLIENT_TRAINING_LOSS_CURVE_H_
#define CLIENT_TRAINING_LOSS_CURVE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/training/training_run.h"

namespace tilewire::client {

// (epochs, loss) each, ascending.
using LossPoints = std::vector<std::pair<double, double>>;

// The mean loss of each of `most` equal parts of the run, at its middle; of every update where
// there are fewer. Parts all of whose updates were skipped have no point.
LossPoints TrainedLosses(const TrainingRecord& record, int64_t most);

// The loss of what is held out, before the first epoch and after each.
LossPoints HeldOutLosses(const TrainingRecord& record);

// A chart of both, '*' and 'o', with a line for each step of the loss; empty where fewer than two
// updates have one.
std::string LossChartText(const TrainingRecord& record);

// Four digits; "-" of NaN.
std::string LossText(double loss);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_LOSS_CURVE_H_
