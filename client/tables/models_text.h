// SPDX-License-Identifier: Apache-2.0
//
// The models of a server, as text for people. Pure function; thread-safe.
#ifndef CLIENT_TABLES_MODELS_TEXT_H_
#define CLIENT_TABLES_MODELS_TEXT_H_

#include <optional>
#include <string>

#include "client/client.h"

namespace tilewire::client {

// Name, version, whether it is ready or loading, and the reason if not; of a model whose metadata
// are known, also its inputs, outputs and precision, a line each. Without a version in the entry,
// those of the metadata are told. Control characters of all that the server says are shown as '?'.
std::string ModelText(const ModelEntry& model, bool is_ready,
                      const std::optional<ModelMetadata>& metadata);

}  // namespace tilewire::client

#endif  // CLIENT_TABLES_MODELS_TEXT_H_
