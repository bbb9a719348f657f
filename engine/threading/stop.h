// SPDX-License-Identifier: Apache-2.0
//
// How the body of a loop that takes long learns that nothing needs its result any more.
#ifndef ENGINE_THREADING_STOP_H_
#define ENGINE_THREADING_STOP_H_

namespace tilewire::threading {

// Within a body of a team that may stop (Team::Until), on the body's thread: whether it has. The
// body may then return at any point. False elsewhere. As cheap as two loads.
bool Stopped();

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
