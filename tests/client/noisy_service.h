// SPDX-License-Identifier: Apache-2.0
//
// A server of one thread whose speed is noisy, in simulated time: what a search for its capacity is
// tested with. Service times vary from request to request, the machine's speed drifts, and now and
// then everything pauses.
#ifndef TESTS_CLIENT_NOISY_SERVICE_H_
#define TESTS_CLIENT_NOISY_SERVICE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace tilewire::client {

struct Noise {
  const char* name = "";
  double jitter = 0;   // standard deviation of the logarithm of each service time
  double drift = 0;    // of the speed, which is the same for neighbours in time
  double drift_s = 1;  // after which it is another one
  double pause_every_s = 0, pause_s = 0;  // on average; 0: no pauses
};

// All times are seconds.
class NoisyService {
 public:
  NoisyService(double service_s, const Noise& noise, uint64_t seed)
      : service_s_(service_s), noise_(noise), random_(seed), speed_(noise.drift * Normal()) {
    next_pause_ = NextPauseAfter(0);
  }

  // When a request is answered that came then; each comes after the one before it.
  double Finish(double came_s) {
    double start = std::max(came_s, free_at_);
    while (next_pause_ <= start) {
      start = std::max(start, next_pause_ + noise_.pause_s);
      next_pause_ = NextPauseAfter(next_pause_);
    }
    free_at_ = start + ServiceAt(start);
    return free_at_;
  }
  // A pause of so long before what comes then.
  void Hold(double came_s, double pause_s) { free_at_ = std::max(came_s, free_at_) + pause_s; }
  // Forgets what waits: its callers have gone.
  void Drop(double now_s) { free_at_ = std::min(free_at_, now_s); }

 private:
  double Normal() { return normal_(random_); }

  double NextPauseAfter(double time) {
    if (noise_.pause_every_s == 0) return std::numeric_limits<double>::infinity();
    return time + exponential_(random_) * noise_.pause_every_s;
  }

  // The speed's logarithm is an Ornstein-Uhlenbeck process.
  double ServiceAt(double time) {
    const double kept = std::exp(-std::max(0.0, time - speed_at_) / noise_.drift_s);
    speed_ = kept * speed_ + std::sqrt(1 - kept * kept) * noise_.drift * Normal();
    speed_at_ = std::max(speed_at_, time);
    return service_s_ * std::exp(speed_ + noise_.jitter * Normal());
  }

  const double service_s_;
  const Noise noise_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::exponential_distribution<double> exponential_;
  double speed_, speed_at_ = 0, free_at_ = 0, next_pause_ = 0;
};

}  // namespace tilewire::client

#endif  // TESTS_CLIENT_NOISY_SERVICE_H_
