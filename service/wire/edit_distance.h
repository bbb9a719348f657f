// SPDX-License-Identifier: Apache-2.0
//
// How alike two names are. Pure function.
#ifndef SERVICE_WIRE_EDIT_DISTANCE_H_
#define SERVICE_WIRE_EDIT_DISTANCE_H_

#include "absl/strings/string_view.h"

namespace tilewire::service {

// How many letters must be inserted, removed, replaced or swapped with their neighbour to make `b`
// of `a`, none of them twice.
int EditDistance(absl::string_view a, absl::string_view b);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_EDIT_DISTANCE_H_
