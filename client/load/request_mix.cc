// SPDX-License-Identifier: Apache-2.0
#include "client/load/request_mix.h"

#include "client/load/golden.h"
#include "client/load/report/server_split.h"

namespace tilewire::client {
namespace {

RequestMix::Request Serialize(const LoadPart& part, const std::vector<Tensor>& inputs, bool split) {
  inference::ModelInferRequest message = MakeInferRequest(part.model, inputs, part.infer);
  RequestMix::Request request;
  request.fingerprint = FingerprintOf(message.SerializeAsString());
  request.deadline = part.infer.deadline;
  // The fingerprint does not depend on it: recorded answers serve with and without the split.
  if (split) (*message.mutable_parameters())[kTimingParameter].set_bool_param(true);
  const grpc::Slice slice(message.SerializeAsString());
  request.bytes = grpc::ByteBuffer(&slice, 1);
  return request;
}

std::vector<double> SharesOf(const std::vector<LoadPart>& parts) {
  std::vector<double> shares;
  for (const LoadPart& part : parts) shares.push_back(part.share);
  return shares;
}

}  // namespace

RequestMix::RequestMix(const LoadOptions& options) : random_(options.seed) {
  for (size_t part = 0; part < options.parts.size(); ++part) {
    turns_.push_back({.first = requests_.size(), .count = options.parts[part].inputs.size()});
    for (const std::vector<Tensor>& inputs : options.parts[part].inputs) {
      requests_.push_back(Serialize(options.parts[part], inputs, options.split));
      requests_.back().part = part;
    }
  }
  const std::vector<double> shares = SharesOf(options.parts);
  draw_ = std::discrete_distribution<size_t>(shares.begin(), shares.end());
}

size_t RequestMix::Next() {
  Turn& turn = turns_[turns_.size() == 1 ? 0 : draw_(random_)];
  return turn.first + turn.next++ % turn.count;
}

std::vector<uint64_t> RequestMix::Fingerprints() const {
  std::vector<uint64_t> fingerprints;
  for (const Request& request : requests_) fingerprints.push_back(request.fingerprint);
  return fingerprints;
}

}  // namespace tilewire::client
