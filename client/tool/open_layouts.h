// SPDX-License-Identifier: Apache-2.0
//
// The cost of the layouts that a primitive's description names, against those that the primitive
// would choose.
#ifndef CLIENT_TOOL_OPEN_LAYOUTS_H_
#define CLIENT_TOOL_OPEN_LAYOUTS_H_

#include <string>

#include "client/client.h"
#include "client/tool/primitive/primitive_runs.h"

namespace tilewire::client {

// A line about the fastest of `named`, the timed runs of `desc`, where it takes more than three
// times that of open layouts, which are timed for it; nothing where it takes less, no layout is
// named, or the server does not take open ones.
std::string CostOfNamedLayouts(Client* client, const v1::PrimitiveDesc& desc,
                               const PrimitiveRuns& named);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_OPEN_LAYOUTS_H_
