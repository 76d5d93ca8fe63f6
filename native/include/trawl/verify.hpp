// Checks that codes and prefilters certify their rows: computes every number from the rows again and compares.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "trawl/codes_file.hpp"
#include "trawl/prefilter_file.hpp"
#include "trawl/rows.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

struct VerifyResult {
  int64_t rows_checked = 0;
  int64_t bad_row = -1;  // lowest local row with invalid codes or bounds; -1: none
  std::string reason;    // why it is invalid, with the stored and the needed value
};

// Throws kBadFile if the shapes differ, kCancelled.
VerifyResult verify_codes(const CodesFile& codes, const Rows& rows, ThreadPool& pool, const std::atomic<bool>* cancel = nullptr);

// Checks a prefilter that belongs to `codes` in the same way.
VerifyResult verify_prefilter(const PrefilterFile& prefilter, const CodesFile& codes, const Rows& rows, ThreadPool& pool,
                              const std::atomic<bool>* cancel = nullptr);

}  // namespace trawl
