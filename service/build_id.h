// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_BUILD_ID_H_
#define SERVICE_BUILD_ID_H_

#include <string>

namespace tilewire::service {

// The hash of this program that the linker has noted in it (NT_GNU_BUILD_ID), in hexadecimal, as
// `file` and `readelf -n` print it: the same sources, tools and options give the same one. Empty
// if there is none. Pure function.
std::string BuildId();

}  // namespace tilewire::service

#endif  // SERVICE_BUILD_ID_H_
