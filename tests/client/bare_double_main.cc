// SPDX-License-Identifier: Apache-2.0
//
// The cheapest server that a gRPC client takes for one: a loop over HTTP/2 frames that gives every
// request prepared bytes, with no gRPC in it. Its core lasts for more requests per second than that
// of any server made with gRPC, so that what ends a load against it is the load tester. It serves
// the model `tiny`; it tells metadata from inference by the size of the message,
// because it reads no headers.
//
// Prints "listening on 127.0.0.1:PORT"; ends on SIGTERM.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/client/tiny_model.h"

namespace tilewire::client {
namespace {

// RFC 9113, sections 4.1 and 6.
constexpr size_t kFrameHead = 9;
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum FrameType : uint8_t { kData = 0, kHeaders = 1, kSettings = 4, kPing = 6, kWindowUpdate = 8 };
constexpr uint8_t kAck = 1, kEndStream = 1, kEndHeaders = 4;
constexpr int64_t kFirstWindow = 65535, kLargestWindow = 0x7fffffff;
// A message of a name alone; requests for inference are longer.
constexpr size_t kLongestName = 32;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> 8 * i));
  return text;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, absl::string_view payload) {
  std::string frame = BigEndian(payload.size(), 3);
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  return frame + BigEndian(stream, 4) + std::string(payload);
}

// A header that no table holds (RFC 7541, section 6.2.2); name and value are short.
std::string Literal(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}

// The frames of an answer, but for the number of the stream.
class FramedAnswer {
 public:
  explicit FramedAnswer(const std::string& message)
      : data_bytes_(5 + message.size()),
        frames_(
            Frame(kHeaders, kEndHeaders, 0, '\x88' + Literal("content-type", "application/grpc")) +
            Frame(kData, 0, 0, '\0' + BigEndian(message.size(), 4) + message) +
            Frame(kHeaders, kEndHeaders | kEndStream, 0, Literal("grpc-status", "0"))) {
    for (size_t at = 0; at < frames_.size();) {
      streams_.push_back(at + 5);
      at += kFrameHead + 256 * uint8_t(frames_[at + 1]) + uint8_t(frames_[at + 2]);
    }
  }
  void AppendTo(std::string* out, uint32_t stream) const {
    const size_t begin = out->size();
    out->append(frames_);
    for (const size_t at : streams_) {
      for (int i = 0; i < 4; ++i) (*out)[begin + at + i] = static_cast<char>(stream >> 8 * (3 - i));
    }
  }
  // Bytes that the client's window shrinks by.
  int64_t data_bytes() const { return data_bytes_; }

 private:
  const int64_t data_bytes_;
  const std::string frames_;
  std::vector<size_t> streams_;  // where the numbers of streams stand
};

struct Answers {
  const FramedAnswer metadata{TinyMetadata(-1).SerializeAsString()};
  const FramedAnswer inference{TinyAnswer('\0').SerializeAsString()};
};

// One client. Not thread-safe.
class Peer {
 public:
  Peer(int socket, const Answers* answers) : socket_(socket), answers_(*answers) {
    // Windows so large that they last for the client's life.
    out_ = Frame(kSettings, 0, 0, BigEndian(4, 2) + BigEndian(kLargestWindow, 4)) +
           Frame(kWindowUpdate, 0, 0, BigEndian(kLargestWindow - kFirstWindow, 4));
  }
  ~Peer() { close(socket_); }

  // Whether the client is still there.
  bool Serve() {
    char bytes[1 << 16];
    for (ssize_t got; (got = read(socket_, bytes, sizeof(bytes))) != -1;) {
      if (got == 0) return false;
      in_.append(bytes, got);
    }
    if (errno != EAGAIN) return false;
    TakeFrames();
    SendAnswers();
    while (!out_.empty()) {
      const ssize_t sent = write(socket_, out_.data(), out_.size());
      if (sent < 0) return errno == EAGAIN;
      out_.erase(0, sent);
    }
    return true;
  }

 private:
  void TakeFrames() {
    size_t at = 0;
    if (!greeted_ && in_.size() >= kPreface.size()) {
      greeted_ = true;
      at = kPreface.size();
    }
    while (greeted_ && in_.size() - at >= kFrameHead) {
      const auto* head = reinterpret_cast<const uint8_t*>(in_.data() + at);
      const size_t length = head[0] << 16 | head[1] << 8 | head[2];
      if (in_.size() - at < kFrameHead + length) break;
      TakeFrame(static_cast<FrameType>(head[3]), head[4], Number(head + 5),
                absl::string_view(in_).substr(at + kFrameHead, length));
      at += kFrameHead + length;
    }
    in_.erase(0, at);
  }

  static uint32_t Number(const uint8_t* bytes) {
    return (bytes[0] & 0x7f) << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
  }

  void TakeFrame(FrameType type, uint8_t flags, uint32_t stream, absl::string_view payload) {
    if (type == kData) {
      size_t& received = received_[stream];
      received += payload.size();
      if ((flags & kEndStream) == 0) return;
      due_.emplace_back(stream, received > kLongestName ? &answers_.inference : &answers_.metadata);
      received_.erase(stream);
    } else if (type == kSettings && (flags & kAck) == 0) {
      out_ += Frame(kSettings, kAck, 0, "");
    } else if (type == kPing && (flags & kAck) == 0) {
      out_ += Frame(kPing, kAck, 0, payload);
    } else if (type == kWindowUpdate && stream == 0) {
      window_ += Number(reinterpret_cast<const uint8_t*>(payload.data()));
    }
  }

  // As many as the client's window has room for.
  void SendAnswers() {
    size_t sent = 0;
    for (; sent < due_.size(); ++sent) {
      const auto [stream, answer] = due_[sent];
      if (answer->data_bytes() > window_) break;
      window_ -= answer->data_bytes();
      answer->AppendTo(&out_, stream);
    }
    due_.erase(due_.begin(), due_.begin() + static_cast<ptrdiff_t>(sent));
  }

  const int socket_;
  const Answers& answers_;
  bool greeted_ = false;
  std::string in_, out_;
  int64_t window_ = kFirstWindow;
  std::unordered_map<uint32_t, size_t> received_;  // bytes of messages that are not complete
  std::vector<std::pair<uint32_t, const FramedAnswer*>> due_;
};

int Listen() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, any, size) != 0 || listen(listener, 1024) != 0 ||
      getsockname(listener, any, &size) != 0)
    std::abort();
  std::printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return listener;
}

[[noreturn]] void Run() {
  const Answers answers;
  const int listener = Listen(), events = epoll_create1(0);
  const auto watch = [events](int socket, uint32_t what) {
    epoll_event event = {.events = what, .data = {.fd = socket}};
    epoll_ctl(events, EPOLL_CTL_ADD, socket, &event);
  };
  watch(listener, EPOLLIN);
  std::map<int, std::unique_ptr<Peer>> peers;
  for (;;) {
    epoll_event ready[64];
    const int count = epoll_wait(events, ready, 64, -1);
    for (int i = 0; i < count; ++i) {
      const int socket = ready[i].data.fd;
      if (socket != listener) {
        if (!peers.at(socket)->Serve()) peers.erase(socket);
        continue;
      }
      const int accepted = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
      const int yes = 1;
      setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      peers[accepted] = std::make_unique<Peer>(accepted, &answers);
      watch(accepted, EPOLLIN | EPOLLOUT | EPOLLET);
    }
  }
}

}  // namespace
}  // namespace tilewire::client

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  tilewire::client::Run();
}
