// SPDX-License-Identifier: Apache-2.0
//
// Code that writes a tensor in two forms: through the caches, and past them, for a tensor that they
// do not hold. What is about to be overwritten need not be read then, but only whole lines are
// written so: code that streams begins at one, and there is none where the strides of its vectors
// do not KeepAligned(). Immutable once filled; thread-safe.
#ifndef ENGINE_JIT_STORE_FORMS_H_
#define ENGINE_JIT_STORE_FORMS_H_

#include <cstddef>
#include <memory>

#include "engine/base/cache_line.h"

namespace tilewire::jit {

template <typename Generator>
struct StoreForms {
  // The form for what begins at `to`.
  const Generator& For(const void* to) const {
    return streaming != nullptr && BeginsLine(to) ? *streaming : *plain;
  }
  size_t code_bytes() const {
    return plain->code_bytes() + (streaming == nullptr ? 0 : streaming->code_bytes());
  }

  std::unique_ptr<const Generator> plain, streaming;  // `streaming` may be null
};

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_STORE_FORMS_H_
