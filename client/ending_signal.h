// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C, SIGTERM and SIGHUP in a long command: the first one asks it to end with what it has, a
// second one ends the process at once. A SIGHUP that is ignored, as under nohup, stays so.
#ifndef CLIENT_ENDING_SIGNAL_H_
#define CLIENT_ENDING_SIGNAL_H_

#include <atomic>

namespace tilewire::client {

// From now on. Not before the work begins: until then the first one ends the process.
void CatchEndingSignals();

// True once one came.
const std::atomic<bool>& HasEndingSignal();

// The exit status that shells give to what the signal has ended, 130, 143 or 129: a script must not
// take a part of the work for the whole.
int StatusOfEndingSignal();

}  // namespace tilewire::client

#endif  // CLIENT_ENDING_SIGNAL_H_
