// SPDX-License-Identifier: Apache-2.0
//
// Messages (protos/trial.proto) on the socket between a server and its trial: four bytes with the
// size, low byte first, then the message.
#ifndef SERVICE_MODELS_TRIAL_TRIAL_FRAMES_H_
#define SERVICE_MODELS_TRIAL_TRIAL_FRAMES_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tilewire::service {

constexpr uint32_t kLargestFrame = 1 << 20;
constexpr size_t kFrameHead = 4;

inline std::string Framed(absl::string_view message) {
  std::string frame;
  for (size_t i = 0; i < kFrameHead; ++i)
    frame.push_back(static_cast<char>(message.size() >> (8 * i)));
  frame.append(message.data(), message.size());
  return frame;
}

// False where the other side has gone, or takes nothing in the time that the socket allows.
inline bool SendAll(int socket, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(sent);
  }
  return true;
}

// The size of the message that a head of kFrameHead bytes announces.
inline uint32_t FrameSize(absl::string_view head) {
  uint32_t size = 0;
  for (size_t i = 0; i < kFrameHead; ++i)
    size |= uint32_t{static_cast<unsigned char>(head[i])} << (8 * i);
  return size;
}

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_TRIAL_TRIAL_FRAMES_H_
