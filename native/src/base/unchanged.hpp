// Work that reads mapped files.
#pragma once
#include "trawl/error.hpp"

namespace trawl {

// Returns what `work` returns, unless a file has changed when it ends: then `require_unchanged` throws kFileChanged with that file, also in
// place of an error that the change caused.
template <typename Work, typename Check>
auto over_unchanged(const Work& work, const Check& require_unchanged) {
  try {
    auto result = work();
    require_unchanged();
    return result;
  } catch (const Error& error) {
    if (error.code != ErrorCode::kCancelled) require_unchanged();
    throw;
  }
}

}  // namespace trawl
