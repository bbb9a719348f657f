// SPDX-License-Identifier: Apache-2.0
//
// tilewire-server, or the process in which one tries out a model.
#include "service/models/trial/trial_process.h"
#include "service/serve.h"

int main(int argc, char** argv) {
  using tilewire::service::TrialProcess;
  if (!tilewire::service::IsTrialProcess(argc, argv))
    return tilewire::service::ServerMain(argc, argv);
  TrialProcess process;
  if (process.Begin()) process.Try();
  return 1;
}
