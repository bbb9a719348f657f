// SPDX-License-Identifier: Apache-2.0
//
// A record as one page that needs nothing else: no script, no font, no request.
#ifndef CLIENT_LOAD_REPORT_REPORT_HTML_H_
#define CLIENT_LOAD_REPORT_REPORT_HTML_H_

#include <string>

#include "client/load/record.h"

namespace tilewire::client {

// Tables of the runs, of errors by code, of parts, of the server's split and of what makes the
// figures doubtful; charts of the percentiles, the distribution, latency against rate, and
// throughput and latency over time, with the runs beside each other (the first eight of them).
std::string ToHtml(const LoadRecord& record);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REPORT_REPORT_HTML_H_
