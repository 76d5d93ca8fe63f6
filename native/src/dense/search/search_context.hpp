// The index, options, filter, kernels and threads of one search call, for all its passes.
#pragma once
#include "base/cancel.hpp"
#include "dense/kernels/kernel_choice.hpp"
#include "dense/search/row_filter.hpp"
#include "trawl/index.hpp"
#include "trawl/search.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

struct SearchContext {
  SearchContext(const Index& index, const SearchOptions& options, const KernelChoice& choice, ThreadPool& pool)
      : index(index),
        options(options),
        filter(index.live_bits(), options.filter_bits),
        choice(choice),
        kernels(*choice.small_batch),
        pool(pool) {}

  void check_cancelled() const { trawl::check_cancelled(options.cancel); }

  const Index& index;
  const SearchOptions& options;
  const RowFilter filter;
  const KernelChoice& choice;
  const Kernels& kernels;  // for everything but scans, which use the kernels of their PackedQueries
  ThreadPool& pool;
};

}  // namespace trawl
