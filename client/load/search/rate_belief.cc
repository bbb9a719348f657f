// SPDX-License-Identifier: Apache-2.0
#include "client/load/search/rate_belief.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace tilewire::client {
namespace {

// The grid. With a steepness of 8 the share doubles with every 9 % of the rate: queues are steeper.
// The first one is for rates below the limit alone, where slow answers may come from pauses.
constexpr std::array kSteepness = {4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0};
// The last one is that of pauses which only one run in thirty meets.
constexpr std::array kCorrelations = {0.0005, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6};
// A curve with a bend, and pauses that are rare, are so much less probable before any run.
const double kLogUnusual = std::log(0.3);
constexpr size_t kRates = 40;

// Log odds of a share, for which the likelihoods of a run are kept.
constexpr double kFirstOdds = -18, kOddsStep = 0.1;
constexpr size_t kOdds = 260;
const double kLimitOdds = std::log(0.01 / 0.99);

// A range is cut down to what is outside of it with this probability at each end.
constexpr double kNegligible = 0.0005;
// Beyond the rates that were tried, as a factor.
constexpr double kReach = 4;

// So many runs are needed to ask whether neighbours are alike. They are neighbours up to such a
// part of all runs.
constexpr size_t kFewestForNeighbours = 8, kNeighbourhoods = 6;
// Surprises, in number of runs, by which likeness is taken for chance.
constexpr double kDoubtedLikeness = 4;
// No run is surer to hold or to fail.
constexpr double kLeastSure = 0.02;
constexpr double kSmallest = 1e-12;  // probability

using OfCorrelations = std::array<float, kCorrelations.size()>;
// Sums of log likelihoods.
using Sums = std::array<std::array<double, kCorrelations.size()>, kSteepness.size()>;

// The beta-binomial distribution of how many of n answers are beyond the bound.
class SlowAnswers {
 public:
  SlowAnswers(int64_t answers, double share, double correlation)
      : n_(static_cast<double>(answers)),
        weight_((1 - correlation) / correlation),
        a_(share * weight_),
        b_((1 - share) * weight_) {}

  double LogProbability(int64_t count) const {
    const double k = static_cast<double>(count);
    return std::lgamma(n_ + 1) - std::lgamma(k + 1) - std::lgamma(n_ - k + 1) +
           std::lgamma(k + a_) - std::lgamma(a_) + std::lgamma(n_ - k + b_) - std::lgamma(b_) -
           std::lgamma(n_ + weight_) + std::lgamma(weight_);
  }
  double ProbabilityBelow(int64_t count) const {
    double one = std::exp(std::lgamma(n_ + b_) - std::lgamma(b_) - std::lgamma(n_ + weight_) +
                          std::lgamma(weight_));
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double k = static_cast<double>(i);
      sum += one;
      one *= (n_ - k) / (k + 1) * (a_ + k) / (b_ + n_ - k - 1);
    }
    return std::min(sum, 1.0);
  }

 private:
  const double n_, weight_, a_, b_;
};

}  // namespace

struct RateBelief::Run {
  double rate = 0;
  bool holds = false;
  // By log odds: how likely is what the run showed, and how likely does a run hold.
  std::vector<OfCorrelations> log_likelihood, to_hold;
};

// A combination, and how likely it makes all runs.
struct RateBelief::Fit {
  double log_limit = 0, below = 0, above = 0;  // the steepness on both sides of the limit
  size_t correlation = 0;
  double log_likelihood = -std::numeric_limits<double>::infinity();

  // Where the share at a rate stands among the log odds, from 0 to less than kOdds - 1.
  double PlaceOf(double log_ratio) const {
    return PlaceOf(log_ratio, log_ratio < 0 ? below : above);
  }
  static double PlaceOf(double log_ratio, double steepness) {
    const double odds = kLimitOdds + steepness * log_ratio;
    return std::clamp((odds - kFirstOdds) / kOddsStep, 0.0, kOdds - 1.001);
  }
};

// The weight of each part of a range of rates; the parts are equal in ratio.
struct RateBelief::Weights {
  double log_low = 0, log_step = 0;
  std::array<double, kRates> parts = {};

  // The logarithm of the rate below which so much of all weights is.
  double Quantile(double probability) const {
    double below = 0;
    for (size_t i = 0; i < kRates; ++i) {
      if (below + parts[i] >= probability && parts[i] > 0)
        return log_low + log_step * (static_cast<double>(i) + (probability - below) / parts[i]);
      below += parts[i];
    }
    return log_low + log_step * kRates;
  }
};

RateBelief::RateBelief() = default;
RateBelief::~RateBelief() = default;

void RateBelief::Add(const RateEvidence& evidence) {
  Run run{.rate = evidence.rate, .holds = evidence.holds()};
  run.log_likelihood.resize(kOdds);
  run.to_hold.resize(kOdds);
  for (size_t i = 0; i < kOdds; ++i) {
    const double share = 1 / (1 + std::exp(-kFirstOdds - kOddsStep * static_cast<double>(i)));
    for (size_t j = 0; j < kCorrelations.size(); ++j) {
      const SlowAnswers slow(evidence.answers, share, kCorrelations[j]);
      const double log_likelihood =
          evidence.at_least
              ? std::log(std::max(kSmallest, 1 - slow.ProbabilityBelow(evidence.beyond)))
              : slow.LogProbability(evidence.beyond);
      run.log_likelihood[i][j] = static_cast<float>(log_likelihood);
      run.to_hold[i][j] = static_cast<float>(slow.ProbabilityBelow(evidence.answers / 100 + 1));
    }
  }
  runs_.push_back(std::move(run));
}

std::vector<RateBelief::Fit> RateBelief::FitsAt(double log_limit) const {
  Sums of_below = {}, of_above = {};
  for (const Run& run : runs_) {
    const double log_ratio = std::log(run.rate) - log_limit;
    Sums& sums = log_ratio < 0 ? of_below : of_above;
    for (size_t s = 0; s < kSteepness.size(); ++s) {
      const double place = Fit::PlaceOf(log_ratio, kSteepness[s]);
      const auto below = static_cast<size_t>(place);
      const double above_share = place - static_cast<double>(below);
      for (size_t j = 0; j < kCorrelations.size(); ++j) {
        const double low = run.log_likelihood[below][j];
        sums[s][j] += low + above_share * (run.log_likelihood[below + 1][j] - low);
      }
    }
  }
  std::vector<Fit> fits;
  for (size_t above = 1; above < kSteepness.size(); ++above) {
    for (size_t below = 0; below <= above; ++below) {
      for (size_t j = 0; j < kCorrelations.size(); ++j) {
        const int unusual = (below < above) + (j + 1 == kCorrelations.size());
        fits.push_back({log_limit, kSteepness[below], kSteepness[above], j,
                        of_below[below][j] + of_above[above][j] + unusual * kLogUnusual});
      }
    }
  }
  return fits;
}

RateBelief::Weights RateBelief::Weigh(double log_low, double log_high) const {
  Weights weights{.log_low = log_low, .log_step = (log_high - log_low) / kRates};
  std::vector<std::vector<Fit>> fits;
  Fit best;
  for (size_t i = 0; i < kRates; ++i) {
    fits.push_back(FitsAt(log_low + weights.log_step * (static_cast<double>(i) + 0.5)));
    for (const Fit& fit : fits.back())
      if (fit.log_likelihood > best.log_likelihood) best = fit;
  }
  const double flattening = Flattening(best);
  double sum = 0;
  for (size_t i = 0; i < kRates; ++i) {
    for (const Fit& fit : fits[i])
      weights.parts[i] += std::exp(flattening * (fit.log_likelihood - best.log_likelihood));
    sum += weights.parts[i];
  }
  for (double& part : weights.parts) part /= sum;
  return weights;
}

double RateBelief::Flattening(const Fit& best) const {
  if (runs_.size() < kFewestForNeighbours) return 1;
  // By how much each run held, or failed, against what the fit expects; of variance 1.
  std::vector<double> surprises;
  double squares = 0;
  for (const Run& run : runs_) {
    const double place = best.PlaceOf(std::log(run.rate) - best.log_limit);
    const double to_hold = std::clamp<double>(
        run.to_hold[static_cast<size_t>(place)][best.correlation], kLeastSure, 1 - kLeastSure);
    surprises.push_back(((run.holds ? 1 : 0) - to_hold) / std::sqrt(to_hold * (1 - to_hold)));
    squares += surprises.back() * surprises.back();
  }
  // How much more the mean of alike runs varies than that of others: Bartlett's sum of their
  // correlations. One lag is not enough: a slow drift shows little from a run to the next one.
  const size_t lags = runs_.size() / kNeighbourhoods;
  double products = 0;
  for (size_t lag = 1; lag <= lags; ++lag) {
    const double weight = 1 - static_cast<double>(lag) / static_cast<double>(lags + 1);
    for (size_t i = lag; i < surprises.size(); ++i)
      products += weight * surprises[i] * surprises[i - lag];
  }
  return 1 / std::max(1.0, 1 + 2 * products / (kDoubtedLikeness + squares));
}

std::vector<double> RateBelief::Quantiles(const std::vector<double>& probabilities) const {
  const auto [slowest, fastest] = std::minmax_element(
      runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.rate < b.rate; });
  const Weights coarse = Weigh(std::log(slowest->rate / kReach), std::log(fastest->rate * kReach));
  // A part more at each end.
  const Weights fine = Weigh(coarse.Quantile(kNegligible) - coarse.log_step,
                             coarse.Quantile(1 - kNegligible) + coarse.log_step);
  std::vector<double> quantiles;
  for (const double probability : probabilities)
    quantiles.push_back(std::exp(fine.Quantile(probability)));
  return quantiles;
}

}  // namespace tilewire::client
