// SPDX-License-Identifier: Apache-2.0
//
// Whether a report may be believed: whether its seconds resemble each other, and whether it is the
// server that was measured and not this client.
#ifndef CLIENT_LOAD_REPORT_STABILITY_H_
#define CLIENT_LOAD_REPORT_STABILITY_H_

#include <string>
#include <vector>

#include "client/load/record.h"
#include "client/load/report/report.h"

namespace tilewire::client {

// Why the load was not stable, each reason a sentence; empty if it was. Judged are whole seconds,
// from three on: a second is unlike the others if its answers are more than 20 % and four standard
// deviations of a Poisson count from the median second's, or its median latency is more than twice
// or less than half of the median second's. Medians are those of the seconds with answers; seconds
// without any are named where that is not chance and they last longer than a median request. Loads
// whose rate changes by intention are judged by their backlog alone.
std::vector<std::string> WhyUnstable(const LoadReport& report);

// Why the figures may be this client's instead of the server's; empty if they are not: requests
// left late by more than 1 ms and a tenth of the p99 latency, or the client's threads were busy for
// nine tenths of the time.
std::vector<std::string> ClientLimits(const LoadReport& report);

// Both of all runs, what ended a run early and its first error: "4 callers: ...; likewise: 8
// callers". What another run is doubted for in the same words, but for their numbers, is not said
// again. Of the runs of a search only what this client may have spoiled, and errors.
std::vector<std::string> Doubts(const LoadRecord& record);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REPORT_STABILITY_H_
