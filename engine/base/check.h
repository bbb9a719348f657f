// SPDX-License-Identifier: Apache-2.0
//
// CHECK ends the process on a programmer's error: something that neither a request nor a model file
// can cause. Everything else is an absl::Status.
#ifndef ENGINE_BASE_CHECK_H_
#define ENGINE_BASE_CHECK_H_

#include "absl/base/internal/raw_logging.h"

#define TILEWIRE_CHECK(condition, message) ABSL_RAW_CHECK(condition, message)

#endif  // ENGINE_BASE_CHECK_H_
