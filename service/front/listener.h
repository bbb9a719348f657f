// SPDX-License-Identifier: Apache-2.0
//
// The port: accepts connections on a thread of its own and hands them on. gRPC 1.51's own accept
// loop never accepts again once a descriptor could not be had; this one keeps a reserve of
// descriptors for the process's own use and closes at once the connections that would take from it,
// and those of a peer that has as many as it may.
#ifndef SERVICE_FRONT_LISTENER_H_
#define SERVICE_FRONT_LISTENER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/threading/background_thread.h"
#include "engine/threading/mutex.h"
#include "service/front/connection_table.h"

namespace tilewire::service {

// Why a connection is closed at once.
enum class ConnectionRefusal : uint8_t { kDescriptors, kPeer, kEnd };

// Thread-compatible, but that any thread may ask for what is open and what was refused.
class Listener {
 public:
  // `most_per_peer`: connections that one peer may have open at a time; 0: no bound. The errors are
  // those of ListenOn().
  static absl::StatusOr<std::unique_ptr<Listener>> Open(const std::string& host, int port,
                                                        int most_per_peer = 0);
  ~Listener() { Stop(); }

  int port() const { return port_; }

  // Calls `take` with the descriptor of each connection, which it owns from then on.
  void Start(absl::AnyInvocable<void(int)> take);
  // Closes the port. Connections that were accepted live on.
  void Stop();
  // How many of those that were accepted are still open. Asks the kernel of each.
  int OpenConnections() const ABSL_LOCKS_EXCLUDED(mutex_) {
    threading::MutexLock lock(&mutex_);
    return connections_.Open();
  }
  int64_t Refused(ConnectionRefusal why) const {
    return refused_[static_cast<size_t>(why)].load(std::memory_order_relaxed);
  }

 private:
  Listener(int socket, int wakeup, int port, int most_per_peer)
      : socket_(socket), wakeup_(wakeup), port_(port), connections_(most_per_peer) {}
  void Accept();
  bool AcceptOne();
  bool Add(int fd, const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Report(ConnectionRefusal why);

  const int socket_, wakeup_;
  const int port_;
  std::array<std::atomic<int64_t>, static_cast<size_t>(ConnectionRefusal::kEnd)> refused_ = {};
  absl::AnyInvocable<void(int)> take_;
  mutable threading::Mutex mutex_;
  ConnectionTable connections_ ABSL_GUARDED_BY(mutex_);
  absl::Time reported_ = absl::InfinitePast();  // of the accepting thread
  std::unique_ptr<threading::BackgroundThread> thread_;
  bool stopped_ = false;
};

}  // namespace tilewire::service

#endif  // SERVICE_FRONT_LISTENER_H_
