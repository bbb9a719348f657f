// SPDX-License-Identifier: Apache-2.0
//
// tilewire-server: reads its flags, listens, loads the models, serves until SIGTERM, SIGINT or
// SIGQUIT, drains. SIGHUP makes it look for models again; SIGUSR1 and SIGUSR2 write the counts of
// requests to the log.
#ifndef SERVICE_SERVE_H_
#define SERVICE_SERVE_H_

namespace tilewire::service {

// Returns the exit status. One in a process, before any other thread runs.
int ServerMain(int argc, char** argv);

}  // namespace tilewire::service

#endif  // SERVICE_SERVE_H_
