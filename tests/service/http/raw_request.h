// SPDX-License-Identifier: Apache-2.0
//
// HTTP over bare sockets, byte by byte.
#ifndef TESTS_SERVICE_HTTP_RAW_REQUEST_H_
#define TESTS_SERVICE_HTTP_RAW_REQUEST_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tilewire::testing {

// A connection to a port of this machine, closed at the end.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawConnection() { close(socket_); }
  RawConnection(const RawConnection&) = delete;

  // False if the other side has closed it.
  bool Send(const std::string& bytes) {
    return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Everything until the other side closes it.
  std::string ReadAll() {
    std::string all;
    char bytes[4096];
    for (ssize_t read; (read = recv(socket_, bytes, sizeof(bytes), 0)) > 0;)
      all.append(bytes, read);
    return all;
  }

 private:
  const int socket_;
};

// The bytes that come back until the server closes the connection.
inline std::string AnswerTo(int port, const std::string& bytes) {
  RawConnection connection(port);
  connection.Send(bytes);
  return connection.ReadAll();
}

// A request without a body; `headers` end in "\r\n".
inline std::string Ask(int port, const std::string& path, const std::string& headers = "",
                       const std::string& method = "GET") {
  return AnswerTo(port, absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: localhost:", port,
                                     "\r\nConnection: close\r\n", headers, "\r\n"));
}

}  // namespace tilewire::testing

#endif  // TESTS_SERVICE_HTTP_RAW_REQUEST_H_
