// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_VERSION_H_
#define SERVICE_VERSION_H_

namespace tilewire::service {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace tilewire::service

#endif  // SERVICE_VERSION_H_
