// SPDX-License-Identifier: Apache-2.0
//
// The real server, whose trials misbehave for models of some names.
#include "service/serve.h"
#include "tests/support/misbehaving_trial.h"

int main(int argc, char** argv) {
  if (tilewire::service::IsTrialProcess(argc, argv)) return tilewire::testing::MisbehavingTrial();
  return tilewire::service::ServerMain(argc, argv);
}
