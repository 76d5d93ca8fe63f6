// The index, options, filter, kernels and threads of one search call, for all its passes.
#pragma once
#include "cancel.hpp"
#include "kernels.hpp"
#include "row_filter.hpp"
#include "trawl/index.hpp"
#include "trawl/search.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl {

struct SearchContext {
  SearchContext(const Index& index, const SearchOptions& options, const Kernels& kernels, ThreadPool& pool)
      : index(index), options(options), filter(index.live_bits(), options.filter_bits), kernels(kernels), pool(pool) {}

  void check_cancelled() const { trawl::check_cancelled(options.cancel); }

  const Index& index;
  const SearchOptions& options;
  const RowFilter filter;
  const Kernels& kernels;
  ThreadPool& pool;
};

}  // namespace trawl
