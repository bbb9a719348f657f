// SPDX-License-Identifier: Apache-2.0
//
// The values of the status page, read from the parts of the server. Takes no lock that a request
// takes, and reads a few files of Linux. Thread-safe.
#ifndef SERVICE_HTTP_STATUS_READER_H_
#define SERVICE_HTTP_STATUS_READER_H_

#include "service/http/watched_server.h"
#include "service/observe/status.h"

namespace tilewire::service {

Status ReadStatus(const WatchedServer& server);

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_STATUS_READER_H_
