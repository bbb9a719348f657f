// SPDX-License-Identifier: Apache-2.0
#include "client/tool/command.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewire::client {
namespace {

absl::string_view NextStep(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return "Is the server running? Name another with --server=HOST:PORT, or start one: "
             "tilewire-server "
             "--model_repository=DIR";
    case absl::StatusCode::kNotFound:
      return "`tilewire models` lists what the server has.";
    case absl::StatusCode::kDeadlineExceeded:
      return "Try again, or raise the timeout.";
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return "`tilewire models` shows the names, types and shapes that models take; --help the "
             "options.";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Server::Connect() const {
  return Client::Connect(address, {.timeout = absl::Seconds(connect_timeout_s)});
}

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "tilewire: %s: %s\n", absl::StatusCodeToString(status.code()),
                status.message());
  if (const absl::string_view next = NextStep(status.code()); !next.empty())
    absl::FPrintF(stderr, "%s\n", next);
  return 1;
}

void AddNormalizationOptions(CLI::App* command, Normalization* normalization) {
  command->add_option("--scale", normalization->scale,
                      "value = (byte * scale - mean) / std, by default 1/255");
  command
      ->add_option("--mean", normalization->mean, "one for all channels, or one each; by default 0")
      ->expected(1, 3);
  command
      ->add_option("--std", normalization->std, "one for all channels, or one each; by default 1")
      ->expected(1, 3)
      ->check([](const std::string& value) {
        double number = 0;
        return absl::SimpleAtod(value, &number) && number != 0
                   ? ""
                   : absl::StrCat("'", value, "' divides: a number other than 0, please");
      });
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (!(bytes << file.rdbuf()))
    return absl::NotFoundError(absl::StrCat("cannot read '", path, "'"));
  return std::move(bytes).str();
}

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), bytes.size());
  file.close();
  if (!file) return absl::PermissionDeniedError(absl::StrCat("cannot write '", path, "'"));
  return absl::OkStatus();
}

Layout ParseLayout(const std::string& name) {
  return name == "nhwc" ? Layout::kNhwc : Layout::kNchw;
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  std::string text;
  for (size_t i = 0; i < shape.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "x",
                    shape[i] >= 0 ? absl::StrCat(shape[i])
                    : i == 0      ? "N"
                                  : "?");
  }
  return text;
}

}  // namespace tilewire::client
