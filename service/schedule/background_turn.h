// SPDX-License-Identifier: Apache-2.0
//
// Background work on a thread of the caller's, such as the loading of a model: it begins when no
// other background work runs and nothing waits, and makes way for requests between its steps.
// Thread-compatible.
#ifndef SERVICE_SCHEDULE_BACKGROUND_TURN_H_
#define SERVICE_SCHEDULE_BACKGROUND_TURN_H_

#include "service/schedule/dispatcher.h"

namespace tilewire::service {

class BackgroundTurn {
 public:
  // Waits for its turn; the next background work to run is this. While requests keep waiting it
  // begins after kLongestPause, so that a server that is never idle loads its models nevertheless.
  explicit BackgroundTurn(Dispatcher* dispatcher) : dispatcher_(dispatcher) {
    dispatcher_->BeginBackground(kLongestPause);
  }
  ~BackgroundTurn() { dispatcher_->EndBackground(); }
  BackgroundTurn(const BackgroundTurn&) = delete;

  // Waits while requests wait, for kLongestPause at most.
  void MakeWay() { dispatcher_->AwaitNothingWaits(kLongestPause); }

 private:
  static constexpr absl::Duration kLongestPause = absl::Milliseconds(100);

  Dispatcher* const dispatcher_;
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_BACKGROUND_TURN_H_
