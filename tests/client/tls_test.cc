// SPDX-License-Identifier: Apache-2.0
//
// Connections over TLS, with a certificate that is valid for a hundred years and for nothing but
// this test.
#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "tests/client/fake_server.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::HasSubstr;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

constexpr absl::Duration kTimeToAnswer = absl::Seconds(60);

constexpr char kKey[] = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgBPOFcEJVLJhQmabk
0Hs/kjcRt2RyID6DN6kfJXTXVDuhRANCAARJyLtN9MGOasaaAXAi77/pbOWA0NxU
oXgKPyFCdjM9zDlgrU2N9/EYoor0yJDqQgklHeF9yGPnG+oVI1Slic4S
-----END PRIVATE KEY-----
)";

// The certificate of "double.test", signed by itself.
constexpr char kCertificate[] = R"(-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUezsMos+FLrHeZi24IBlDK7a9694wCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLZG91YmxlLnRlc3QwIBcNMjYxMTIyMDk1OTI3WhgPMjEyNjEw
MjkwOTU5MjdaMBYxFDASBgNVBAMMC2RvdWJsZS50ZXN0MFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAESci7TfTBjmrGmgFwIu+/6WzlgNDcVKF4Cj8hQnYzPcw5YK1N
jffxGKKK9MiQ6kIJJR3hfchj5xvqFSNUpYnOEqNrMGkwHQYDVR0OBBYEFNjateWN
yLE36bxPFRsFrYqiYYcpMB8GA1UdIwQYMBaAFNjateWNyLE36bxPFRsFrYqiYYcp
MA8GA1UdEwEB/wQFMAMBAf8wFgYDVR0RBA8wDYILZG91YmxlLnRlc3QwCgYIKoZI
zj0EAwIDSAAwRQIgUU43mkNE2cC2vayXGk4jWM73C8Fl+sR8MrWp5XmVlssCIQCo
Et9WHbFUbdNjpvr54mVNAE6c1wi8ETudoZlxUPLYMw==
-----END CERTIFICATE-----
)";

class TlsTest : public ::testing::Test {
 protected:
  void Start(grpc_ssl_client_certificate_request_type request) {
    grpc::SslServerCredentialsOptions options(request);
    options.pem_root_certs = kCertificate;
    options.pem_key_cert_pairs.push_back({kKey, kCertificate});
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }

  // A short timeout, because a refusal is not waited for: the library would try again and again.
  absl::StatusOr<ModelMetadata> Call(const std::optional<TlsOptions>& tls,
                                     absl::Duration timeout = absl::Milliseconds(1500)) {
    auto client = Client::Connect(address_, {.timeout = timeout, .tls = tls});
    if (!client.ok()) return client.status();
    return (*client)->Metadata("echo");
  }

  FakeService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(TlsTest, TheServerIsKnownByItsRootAndName) {
  Start(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  const TlsOptions right{.roots = kCertificate, .server_name = "double.test"};
  EXPECT_THAT(Call(right, kTimeToAnswer), IsOk());
  EXPECT_THAT(Call(std::nullopt), StatusIs(absl::StatusCode::kUnavailable));
  TlsOptions wrong_name = right, system_roots = right;
  wrong_name.server_name = "other.test";
  EXPECT_THAT(Call(wrong_name), StatusIs(absl::StatusCode::kUnavailable));
  system_roots.roots = "";
  const auto refused = Call(system_roots);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("over TLS"));
}

TEST_F(TlsTest, AServerMayAskForTheClientsCertificate) {
  Start(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  TlsOptions tls{.roots = kCertificate, .server_name = "double.test"};
  EXPECT_THAT(Call(tls), StatusIs(absl::StatusCode::kUnavailable));
  tls.certificate = kCertificate;
  tls.key = kKey;
  EXPECT_THAT(Call(tls, kTimeToAnswer), IsOk());
}

}  // namespace
}  // namespace tilewire::client
