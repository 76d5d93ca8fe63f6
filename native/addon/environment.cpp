#include "environment.hpp"

#include <mutex>

#include "trawl/error.hpp"

namespace trawl_addon {

namespace {

std::mutex pool_mutex;
trawl::ThreadPool* shared_pool = nullptr;  // never destroyed: its threads may outlive static objects

}  // namespace

Jobs& jobs_of(Napi::Env env) { return *env.GetInstanceData<Jobs>(); }

trawl::ThreadPool& pool() {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  if (shared_pool != nullptr) return *shared_pool;
  throw trawl::Error(trawl::ErrorCode::kBadArgument, "setThreads must be called before the first use of the engine's threads");
}

void set_pool_threads(int64_t threads) {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  if (shared_pool == nullptr) {
    shared_pool = new trawl::ThreadPool(threads);
  } else {
    shared_pool->set_threads(threads);
  }
}

int64_t pool_threads() {
  const std::lock_guard<std::mutex> lock(pool_mutex);
  return shared_pool == nullptr ? 0 : shared_pool->threads();
}

}  // namespace trawl_addon
