// SPDX-License-Identifier: Apache-2.0
//
// How the body of a loop that takes long learns that nothing needs its result any more, or that its
// thread is wanted elsewhere.
#ifndef ENGINE_THREADING_STOP_H_
#define ENGINE_THREADING_STOP_H_

namespace tilewire::threading {

// Within a body of a team that may stop (Team::Until), on the body's thread: whether it has. The
// body may then return at any point. False elsewhere. As cheap as two loads.
bool Stopped();

// Within a body that several threads may run: whether a task waits for a thread of the arena.
bool TasksWait();

// For bodies whose inner loops have short iterations: asks once in 1024 calls. Once true, it stays
// true.
class StopCheck {
 public:
  bool operator()() {
    if ((++calls_ & 1023) == 0) stopped_ = Stopped();
    return stopped_;
  }

 private:
  unsigned calls_ = 0;
  bool stopped_ = false;
};

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_STOP_H_
