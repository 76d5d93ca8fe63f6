// Does a codes file still certify these rows? Everything is derived again from the row and compared.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "trawl/codes_file.hpp"
#include "trawl/rows.hpp"
#include "trawl/screen_file.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

struct VerifyResult {
  int64_t rows_checked = 0;
  int64_t bad_row = -1;   // lowest local row whose codes or bounds are not valid, -1 when all are
  std::string reason;     // why, with the stored and the needed value
};

// Throws kBadFile when shapes disagree, kCancelled, kIo.
VerifyResult verify_codes(const CodesFile& codes, const Rows& rows, ThreadPool& pool,
                          const std::atomic<bool>* cancel = nullptr);

// The same for a screen; `codes` are those it was made with.
VerifyResult verify_screen(const ScreenFile& screen, const CodesFile& codes, const Rows& rows, ThreadPool& pool,
                           const std::atomic<bool>* cancel = nullptr);

}  // namespace trawl
