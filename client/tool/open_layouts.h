// SPDX-License-Identifier: Apache-2.0
//
// What the layouts that a primitive's description names cost, against those that the primitive
// would choose.
#ifndef CLIENT_TOOL_OPEN_LAYOUTS_H_
#define CLIENT_TOOL_OPEN_LAYOUTS_H_

#include <optional>
#include <string>

#include "client/client.h"
#include "client/tool/primitive_runs.h"

namespace tilewire::client {

// The same primitive with every layout left open that it may choose; nothing where none is named.
std::optional<v1::PrimitiveDesc> WithOpenLayouts(const v1::PrimitiveDesc& desc);

// A line about a median of `named`, the timed runs of `desc`, that is more than kMuchSlower times
// that of open layouts, which are timed for it; nothing where it is less, no layout is named, or
// the server does not take open ones.
inline constexpr double kMuchSlower = 3;
std::string CostOfNamedLayouts(Client* client, const v1::PrimitiveDesc& desc,
                               const PrimitiveRuns& named);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_OPEN_LAYOUTS_H_
