// SPDX-License-Identifier: Apache-2.0
//
// The limit as far as runs at several rates tell it: the rate at which one answer of a
// hundred is beyond a bound in the long run, so that p99 is the bound.
//
// One run says little. Slow answers come in clusters, as each waits for those before it: at the
// limit a run of some hundred answers often has none of them, and now and then thirty in a row. A
// machine that is slower in one minute than in the next does the same to whole runs. So that
// runs at the same rate differ, and rates that hold are above others that fail.
//
// The belief is Bayesian. The share of answers beyond the bound is taken to be
//
//   f(rate) = logistic(logit(0.01) + steepness * log(rate / limit))
//
// and their number in a run of n to be beta-binomial of mean n f, with a correlation for the
// clusters. The steepness may be less below the limit than above it: pauses make about as many
// answers slow at every rate, and a queue that grows makes all of them slow within few percent of
// the rate. What runs far above the limit show would else hide what pauses do below it. Limit,
// steepness and correlation are unknown: each combination on a grid weighs as much as it makes what
// the runs showed likely. Where the runs contradict each other, small correlations and large
// steepness weigh little, and the range of the limit is wide. The weights are flattened if runs
// resemble their neighbours in time, since then each says less.
//
// A run that failed for another reason, or was ended as soon as it could not hold, counts as one
// with at least so many answers beyond the bound. Thread-compatible.
#ifndef CLIENT_LOAD_SEARCH_RATE_BELIEF_H_
#define CLIENT_LOAD_SEARCH_RATE_BELIEF_H_

#include <cstdint>
#include <vector>

namespace tilewire::client {

struct RateEvidence {
  double rate = 0;        // above 0
  int64_t answers = 0;    // that were planned, at least 1
  int64_t beyond = 0;     // of them, beyond the bound
  bool at_least = false;  // there may be more

  // As p99 judges: one in a hundred may be beyond.
  bool holds() const { return !at_least && beyond <= answers / 100; }
};

class RateBelief {
 public:
  RateBelief();
  ~RateBelief();

  // In the order in which they were run.
  void Add(const RateEvidence& evidence);

  // For each probability, the rate below which the limit lies with it. There is evidence.
  std::vector<double> Quantiles(const std::vector<double>& probabilities) const;

 private:
  struct Run;
  struct Fit;
  struct Weights;

  std::vector<Fit> FitsAt(double log_limit) const;
  Weights Weigh(double log_low, double log_high) const;
  // The factor by which log likelihoods count: 1 if neighbouring runs are not alike.
  double Flattening(const Fit& best) const;

  std::vector<Run> runs_;
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_SEARCH_RATE_BELIEF_H_
