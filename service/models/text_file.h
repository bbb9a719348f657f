// SPDX-License-Identifier: Apache-2.0
//
// Text that lies beside a model and travels to clients.
#ifndef SERVICE_MODELS_TEXT_FILE_H_
#define SERVICE_MODELS_TEXT_FILE_H_

#include <string>

namespace tilewire::service {

// What travels in a message's strings must be UTF-8, or no client can parse the message.
bool IsUtf8(const std::string& text);

// The text of a file, such as labels.txt. Empty if there is none, and, with a line in the log, if
// it is larger than 64 KB or not UTF-8.
std::string ReadTextFile(const std::string& path);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_TEXT_FILE_H_
