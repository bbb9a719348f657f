// SPDX-License-Identifier: Apache-2.0
//
// Fields of the wire's descriptors that several operations fill in from the same words. Pure
// functions; thread-safe.
#ifndef CLIENT_PRIMITIVE_FIELDS_H_
#define CLIENT_PRIMITIVE_FIELDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/primitive_text.h"

namespace tilewire::client {

// The primitive chooses a layout that was not named.
void LetChoose(v1::MemoryDesc* desc);

// The destination as given, or with these dims and type and a layout of the primitive's choice.
absl::Status FillDst(const PrimitiveText& text, const std::vector<int64_t>& dims, v1::DataType type,
                     v1::MemoryDesc* dst);

// text.algorithm is the cell; weights, and the bias if there is one, follow from it, from `src`
// [T,N,I], text.hidden and text.direction.
absl::Status FillRnn(const PrimitiveText& text, const v1::MemoryDesc& src, v1::Rnn* op);

// The elements of `src` along text.axis that text.indices, of s32 unless it names a type, takes.
absl::Status FillGather(const PrimitiveText& text, const v1::MemoryDesc& src, v1::Gather* op);

}  // namespace tilewire::client

#endif  // CLIENT_PRIMITIVE_FIELDS_H_
