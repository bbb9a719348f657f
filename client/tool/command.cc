// SPDX-License-Identifier: Apache-2.0
#include "client/tool/command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "client/connection.h"
#include "client/tool/model_place.h"
#include "engine/onnx/file/new_file.h"

namespace tilewire::client {
namespace {

absl::string_view NextStep(const absl::Status& status, absl::string_view when_invalid) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      // The server refuses because of the state of one of its models.
      if (absl::StartsWith(status.message(), "model ")) {
        return "The server answers; try again soon. `tilewire models` shows the model's state.";
      }
      if (status.message() == "the server is not serving")
        return "The server answers; `tilewire models` shows what is not ready.";
      return "Is the server running? Name another with --server=HOST:PORT, or start one: "
             "tilewire-server "
             "--model_repository=DIR";
    case absl::StatusCode::kNotFound:
      return "`tilewire models` lists what the server has.";
    case absl::StatusCode::kResourceExhausted:
      // gRPC's words, which name no flag.
      if (absl::StrContains(status.message(), "message larger than max")) {
        return "Send fewer rows in a request, or start the server with a larger --max_message_mb.";
      }
      return "";
    case absl::StatusCode::kDeadlineExceeded:
      return "Try again, or raise the timeout.";
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      if (!when_invalid.empty()) return when_invalid;
      return "`tilewire models` shows the names, types and shapes that models take; --help the "
             "options.";
    default:
      return "";
  }
}

// Why the file cannot be written; empty if it can.
std::string WhyNotWritable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return absl::StrCat(path, " is a folder, not a file");
  std::string folder = std::filesystem::path(Followed(path)).parent_path().string();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, error))
    return absl::StrCat("there is no folder ", folder);
  const bool exists = std::filesystem::exists(path, error);
  if (access(exists ? path.c_str() : folder.c_str(), W_OK) == 0) return "";
  return absl::StrCat("this user may not write ", exists ? path : absl::StrCat("in ", folder));
}

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write '", path, "'"));
}

// The bytes into what is there, which is opened with `flags` too.
absl::Status WriteInPlace(const std::string& path, int flags, absl::string_view bytes) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags);
  if (descriptor < 0) return CannotWrite(path, errno);
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
    if (written < 0 && errno != EINTR) error = errno;
  }
  // Some file systems report only now that a write failed.
  if (close(descriptor) != 0 && error == 0) error = errno;
  return error == 0 ? absl::OkStatus() : CannotWrite(path, error);
}

// The bytes in a new file, with the permissions of what it replaces: `there`, if anything.
absl::Status WriteNew(const std::string& path, const struct stat* there, absl::string_view bytes) {
  auto file = reader::NewFile::Create(path);
  if (!file.ok()) return file.status();
  absl::Status status;
  if (there != nullptr) status = file->SetMode(there->st_mode & 07777);
  if (status.ok()) status = file->Append(bytes.data(), static_cast<int64_t>(bytes.size()));
  if (status.ok()) status = file->Finish();
  return status.ok() ? file->Publish(/*replaces=*/true) : status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Server::Connect(bool bare) const {
  ConnectOptions options{.timeout = absl::Seconds(connect_timeout_s), .bare = bare};
  if (!tls) return Client::Connect(address, options);
  options.tls.emplace();
  options.tls->server_name = tls_name;
  const std::pair<const std::string&, std::string&> files[] = {{tls_ca, options.tls->roots},
                                                               {tls_cert, options.tls->certificate},
                                                               {tls_key, options.tls->key}};
  for (const auto& [file, text] : files) {
    if (file.empty()) continue;
    auto content = ReadFile(file);
    if (!content.ok()) return content.status();
    text = *std::move(content);
  }
  return Client::Connect(address, options);
}

absl::Status CheckAddress(const std::string& address) {
  if (const auto target = TargetOf(address); !target.ok()) return target.status();
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon != std::string::npos && absl::SimpleAtoi(address.substr(colon + 1), &port) &&
      port >= 1 && port <= 65535) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", address, "' is not HOST:PORT, such as 127.0.0.1:8001"));
}

void AddTlsOptions(CLI::App* app, Server* server) {
  CLI::Option* tls = app->add_flag("--tls", server->tls, "encrypt the connection");
  app->add_option("--tls_ca", server->tls_ca,
                  "PEM file of the roots that sign the server's certificate; else the system's")
      ->needs(tls)
      ->check(CLI::ExistingFile);
  CLI::Option* cert =
      app->add_option("--tls_cert", server->tls_cert, "PEM file of this client's certificate")
          ->needs(tls)
          ->check(CLI::ExistingFile);
  CLI::Option* key = app->add_option("--tls_key", server->tls_key, "PEM file of its key")
                         ->needs(cert)
                         ->check(CLI::ExistingFile);
  cert->needs(key);
  app->add_option("--tls_name", server->tls_name,
                  "the name in the server's certificate, if not the host's")
      ->needs(tls);
}

CLI::Validator Between(double low, double high) {
  const auto check = [=](const std::string& text) {
    double number = 0;
    return absl::SimpleAtod(text, &number) && number >= low && number <= high
               ? ""
               : absl::StrCat("'", text, "' is not a number from ", low, " to ", high);
  };
  return CLI::Validator(check, absl::StrCat(low, " to ", high));
}

CLI::Validator Below(double low, double end) {
  const auto check = [=](const std::string& text) {
    double number = 0;
    return absl::SimpleAtod(text, &number) && number >= low && number < end
               ? ""
               : absl::StrCat("'", text, "' is not a number from ", low, " to below ", end);
  };
  return CLI::Validator(check, absl::StrCat(low, " to below ", end));
}

CLI::Validator Writable() {
  return {[](std::string& path) { return WhyNotWritable(path); }, "FILE"};
}

absl::Status CheckEffects(const CLI::App& command, const std::vector<FlagEffect>& effects) {
  for (const FlagEffect& effect : effects) {
    if (effect.has_one || command.count(effect.flag) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(effect.flag, " has no effect here: ", effect.otherwise));
  }
  return absl::OkStatus();
}

CLI::Validator AtLeastOne() { return CLI::Range(int64_t{1}, int64_t{1} << 31); }

int Refuse(const absl::Status& status) {
  absl::FPrintF(stderr, "tilewire: %s: %s\n", absl::StatusCodeToString(status.code()),
                ShownText(status.message()));
  return 2;
}

int Report(const absl::Status& status, absl::string_view when_invalid) {
  if (status.ok()) return 0;
  Refuse(status);
  if (const absl::string_view next = NextStep(status, when_invalid); !next.empty())
    absl::FPrintF(stderr, "%s\n", next);
  return 1;
}

void AddNormalizationOptions(CLI::App* command, Normalization* normalization) {
  constexpr double kMost = std::numeric_limits<float>::max();
  command
      ->add_option("--scale", normalization->scale,
                   "value = (byte * scale - mean) / std, by default 1/255")
      ->check(Between(-kMost, kMost));
  command
      ->add_option("--mean", normalization->mean, "one for all channels, or one each; by default 0")
      ->expected(1, 3)
      ->check(Between(-kMost, kMost));
  command
      ->add_option("--std", normalization->std, "one for all channels, or one each; by default 1")
      ->expected(1, 3)
      ->check([](const std::string& value) {
        double number = 0;
        return absl::SimpleAtod(value, &number) && std::isfinite(number) && number != 0
                   ? ""
                   : absl::StrCat("'", value, "' divides: a number other than 0, please");
      });
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read '", path, "'"));
  std::ostringstream bytes;
  if (file.peek() != std::ifstream::traits_type::eof()) bytes << file.rdbuf();
  if (file.bad() || !bytes) return absl::DataLossError(absl::StrCat("cannot read '", path, "'"));
  if (bytes.view().empty())
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is empty"));
  return std::move(bytes).str();
}

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  const std::string place = Followed(path);
  struct stat there;
  const bool exists = stat(place.c_str(), &there) == 0;
  if (exists && !S_ISREG(there.st_mode)) return WriteInPlace(place, 0, bytes);
  // The folder alone would let a file be replaced that may not be written.
  if (exists && access(place.c_str(), W_OK) != 0) return CannotWrite(path, errno);
  const absl::Status written = WriteNew(place, exists ? &there : nullptr, bytes);
  const bool stays = absl::IsPermissionDenied(written) || absl::IsFailedPrecondition(written);
  return exists && stays ? WriteInPlace(place, O_TRUNC, bytes) : written;
}

Layout ParseLayout(const std::string& name) {
  return name == "nhwc" ? Layout::kNhwc : Layout::kNchw;
}

absl::Status CheckBatch(const std::string& model, const ModelMetadata& metadata, int64_t batch) {
  for (const TensorMetadata& input : metadata.inputs) {
    if (batch == 1 || input.shape.empty() || input.shape[0] < 0) continue;
    if (input.shape[0] == batch) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("--batch=%d: model '%s' takes a batch of %d only (input '%s': %s)", batch,
                        model, input.shape[0], input.name, ShapeText(input.shape)));
  }
  return absl::OkStatus();
}

}  // namespace tilewire::client
