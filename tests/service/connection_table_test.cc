// SPDX-License-Identifier: Apache-2.0
//
// How many connections a peer may have open, on sockets that nothing is connected to.
#include "service/front/connection_table.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/time/clock.h"

namespace tilewire::service {
namespace {

int OpenSocket() { return socket(AF_INET, SOCK_STREAM, 0); }

std::string PeerOfText(int family, const char* text) {
  sockaddr_storage address = {};
  address.ss_family = family;
  void* const at = family == AF_INET
                       ? static_cast<void*>(&reinterpret_cast<sockaddr_in&>(address).sin_addr)
                       : static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(address).sin6_addr);
  EXPECT_EQ(inet_pton(family, text, at), 1) << text;
  return PeerOf(address);
}

TEST(ConnectionTableTest, APeerHasAsManyAsItMayAndOthersHaveTheirs) {
  ConnectionTable table(2);
  const int first = OpenSocket(), second = OpenSocket(), third = OpenSocket();
  EXPECT_TRUE(table.Add(first, "one"));
  EXPECT_TRUE(table.Add(second, "one"));
  EXPECT_FALSE(table.Add(third, "one"));
  EXPECT_TRUE(table.Add(third, "two"));
  EXPECT_EQ(table.Open(), 3);
  close(first);
  EXPECT_EQ(table.Open(), 2);
  const int fourth = OpenSocket();
  const absl::Time begin = absl::Now();
  bool added = false;  // once the pause between two looks has passed
  while (!added && absl::Now() - begin < absl::Minutes(1)) added = table.Add(fourth, "one");
  EXPECT_TRUE(added) << "one that was closed counts no more";
  close(second);
  close(third);
  close(fourth);
  EXPECT_EQ(table.Open(), 0);
}

TEST(ConnectionTableTest, AClosedOneWhoseDescriptorIsGivenAnewCountsForItsNewPeerOnly) {
  ConnectionTable table(1);
  const int first = OpenSocket();
  EXPECT_TRUE(table.Add(first, "one"));
  close(first);
  const int again = OpenSocket();
  ASSERT_EQ(again, first);
  EXPECT_TRUE(table.Add(again, "two"));
  const int other = OpenSocket();
  EXPECT_TRUE(table.Add(other, "one"));
  EXPECT_EQ(table.Open(), 2);
  close(again);
  close(other);
}

TEST(ConnectionTableTest, WithoutABoundAllAreTaken) {
  ConnectionTable table(0);
  const int first = OpenSocket(), second = OpenSocket();
  EXPECT_TRUE(table.Add(first, "one"));
  EXPECT_TRUE(table.Add(second, "one"));
  close(first);
  close(second);
}

TEST(ConnectionTableTest, APeerIsAnIpv4AddressOrAnIpv6Network) {
  const std::string ipv4 = PeerOfText(AF_INET, "192.0.2.1");
  EXPECT_NE(ipv4, PeerOfText(AF_INET, "192.0.2.2"));
  EXPECT_EQ(ipv4, PeerOfText(AF_INET6, "::ffff:192.0.2.1"));
  const std::string ipv6 = PeerOfText(AF_INET6, "2001:db8:0:1::1");
  EXPECT_EQ(ipv6, PeerOfText(AF_INET6, "2001:db8:0:1:ffff::2"));
  EXPECT_NE(ipv6, PeerOfText(AF_INET6, "2001:db8:0:2::1"));
}

}  // namespace
}  // namespace tilewire::service
