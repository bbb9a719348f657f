// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/reflection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "service/rpc/parsed_request.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

constexpr size_t kMostStreams = 256;

// `file` and all that it imports, each once, itself first.
void AddWithImports(const FileDescriptor* file, std::vector<const FileDescriptor*>* all) {
  if (std::find(all->begin(), all->end(), file) != all->end()) return;
  all->push_back(file);
  for (int i = 0; i < file->dependency_count(); ++i) AddWithImports(file->dependency(i), all);
}

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

}  // namespace

template <typename Service>
StreamMethod::Terms Reflection::TermsOf(const Method& row, Service* service) {
  return {.row = &row,
          .ask =
              [service](grpc::ServerContext* context, StreamMethod::Stream* stream,
                        grpc::ServerCompletionQueue* queue, Event* arrived) {
                service->RequestServerReflectionInfo(context, stream, queue, queue, arrived->tag());
              },
          .serve = [this](const Call&, const grpc::ByteBuffer& request,
                          grpc::ByteBuffer* response) { return Answer(request, response); },
          .in_flight = 1,
          .most_streams = kMostStreams};
}

Reflection::Reflection(const CallHost& host)
    : host_(host),
      alpha_streams_(
          TermsOf(MethodNamed("grpc.reflection.v1alpha.ServerReflection", "ServerReflectionInfo"),
                  &alpha_)),
      v1_streams_(TermsOf(
          MethodNamed("grpc.reflection.v1.ServerReflection", "ServerReflectionInfo"), &v1_)) {}

void Reflection::Tell(const std::vector<std::string>& services) {
  services_ = services;
  std::vector<const FileDescriptor*> files;
  for (const std::string& name : services) {
    const auto* service = Pool().FindServiceByName(name);
    if (service != nullptr) AddWithImports(service->file(), &files);
  }
  files_ = {files.begin(), files.end()};
}

void Reflection::Await(CallQueue* queue) {
  alpha_streams_.Await(&host_, queue);
  v1_streams_.Await(&host_, queue);
}

void Reflection::Drain() {
  alpha_streams_.Drain();
  v1_streams_.Drain();
}

bool Reflection::AwaitNoStreams() {
  const bool is_alpha_empty = alpha_streams_.AwaitNone();
  return v1_streams_.AwaitNone() && is_alpha_empty;
}

absl::Status Reflection::AddFile(const FileDescriptor* file, Response* response) const {
  if (file == nullptr || files_.count(file) == 0) return absl::NotFoundError("no such name");
  std::vector<const FileDescriptor*> files;
  AddWithImports(file, &files);
  for (const FileDescriptor* one : files) {
    google::protobuf::FileDescriptorProto text;
    one->CopyTo(&text);
    text.SerializeToString(
        response->mutable_file_descriptor_response()->add_file_descriptor_proto());
  }
  return absl::OkStatus();
}

// There are no extensions.
absl::Status Reflection::Find(const Request& request, Response* response) const {
  switch (request.message_request_case()) {
    case Request::kListServices:
      for (const std::string& name : services_) {
        response->mutable_list_services_response()->add_service()->set_name(name);
      }
      return absl::OkStatus();
    case Request::kFileByFilename:
      return AddFile(Pool().FindFileByName(request.file_by_filename()), response);
    case Request::kFileContainingSymbol:
      return AddFile(Pool().FindFileContainingSymbol(request.file_containing_symbol()), response);
    case Request::kAllExtensionNumbersOfType: {
      const std::string& name = request.all_extension_numbers_of_type();
      const auto* type = Pool().FindMessageTypeByName(name);
      if (type == nullptr || files_.count(type->file()) == 0) break;
      response->mutable_all_extension_numbers_response()->set_base_type_name(name);
      return absl::OkStatus();
    }
    case Request::kFileContainingExtension:
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      return absl::UnimplementedError("an unknown question");
  }
  return absl::NotFoundError("no such name");
}

absl::StatusOr<OwnedJob> Reflection::Answer(const grpc::ByteBuffer& request,
                                            grpc::ByteBuffer* response) {
  return AnswerNames<Request, Response>(
      host_, request, response, [this](const Request& asked, Response* answer) {
        answer->set_valid_host(asked.host());
        *answer->mutable_original_request() = asked;
        const absl::Status found = Find(asked, answer);
        if (found.ok()) return absl::OkStatus();
        answer->mutable_error_response()->set_error_code(static_cast<int>(found.code()));
        answer->mutable_error_response()->set_error_message(std::string(found.message()));
        return absl::OkStatus();
      });
}

}  // namespace tilewire::service
