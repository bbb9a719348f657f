// SPDX-License-Identifier: Apache-2.0
#include "tests/support/misbehaving_trial.h"

int main(int argc, char** argv) {
  return tilewire::service::IsTrialProcess(argc, argv) ? tilewire::testing::MisbehavingTrial() : 2;
}
