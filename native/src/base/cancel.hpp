// The caller's cancel flag.
#pragma once
#include <atomic>

#include "trawl/error.hpp"

namespace trawl {

// Throws kCancelled if the flag is set. Null: never throws.
inline void check_cancelled(const std::atomic<bool>* cancel) {
  if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
    throw Error(ErrorCode::kCancelled, "the call was cancelled");
  }
}

}  // namespace trawl
