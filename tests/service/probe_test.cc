// SPDX-License-Identifier: Apache-2.0
#include "service/probe.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Arguments = std::vector<std::string>;

std::string Found(const Arguments& own, const Arguments& process_1,
                  const ProbeTarget& otherwise = {"0.0.0.0", 8001}) {
  const ProbeTarget target = FindProbeTarget(own, process_1, otherwise);
  return target.host + " " + std::to_string(target.port);
}

TEST(ProbeTest, AsksTheServerThatItIsTold) {
  const Arguments probe = {"tilewire-server", "--probe"};
  EXPECT_EQ(Found(probe, {}), "127.0.0.1 8001");
  EXPECT_EQ(Found(probe, {}, {"10.0.0.1", 9000}), "10.0.0.1 9000");
  EXPECT_EQ(Found(probe, {}, {"::", 9000}), "::1 9000");
  EXPECT_EQ(Found({"tilewire-server", "--probe", "--port", "7"}, {}), "127.0.0.1 7");
  EXPECT_EQ(Found({"tilewire-server", "--port=7", "--host=::1", "--probe"}, {}), "::1 7");
}

TEST(ProbeTest, AsksTheServerThatIsProcess1) {
  const Arguments probe = {"tilewire-server", "--probe"};
  const Arguments server = {"/usr/local/bin/tilewire-server", "--host=10.0.0.1", "--port", "9000"};
  EXPECT_EQ(Found(probe, server), "10.0.0.1 9000");
  EXPECT_EQ(Found({"tilewire-server", "--probe", "--port=7"}, server), "10.0.0.1 7");
  // Flags whose names begin alike, values that are not numbers, and other programs do not count.
  EXPECT_EQ(Found(probe, {"tilewire-server", "--ports=1", "--port=x"}), "127.0.0.1 8001");
  EXPECT_EQ(Found(probe, {"/sbin/init", "--port=9000"}), "127.0.0.1 8001");
}

TEST(ProbeTest, ReadsCommandLines) {
  const std::string path = testing::TempDir() + "/cmdline";
  std::ofstream(path, std::ios::binary) << std::string("tilewire-server\0--port\0\0--x=1\0", 30);
  EXPECT_THAT(ReadCommandLine(path), ElementsAre("tilewire-server", "--port", "", "--x=1"));
  EXPECT_THAT(ReadCommandLine("/proc/self/cmdline")[0], HasSubstr("probe_test"));
  EXPECT_THAT(ReadCommandLine(path + ".none"), IsEmpty());
}

TEST(ProbeTest, ServersThatDoNotAnswer) {
  EXPECT_THAT(Probe({"127.0.0.1", 1}).message(), HasSubstr("no server answers at 127.0.0.1:1"));
  EXPECT_THAT(Probe({"127.0.0.1", 0}).message(), HasSubstr("say --port"));
}

}  // namespace
}  // namespace tilewire::service
