// Runs jobs on a few threads of their own, not on Node's main thread and not on libuv's four threads: a search waits for the
// engine's pool, so four searches would leave libuv no thread for file access. The promise of a job is settled on the thread of
// the environment that started it.
#pragma once
#include <napi.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace trawl_addon {

// Returns the value of the promise. Runs on the environment's thread.
using Deliver = std::function<Napi::Value(Napi::Env)>;
// Runs on a thread of Jobs; `cancel` becomes true when the caller cancels the job.
using Work = std::function<Deliver(const std::atomic<bool>& cancel)>;

// One per environment (the main thread and each worker thread that loads the addon).
class Jobs {
 public:
  explicit Jobs(Napi::Env env);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // `id` names the job for cancel() and must differ from the ids of all running jobs. `held` is released on the environment's
  // thread just before the promise is settled. Throws std::system_error if no thread can be started.
  Napi::Promise start(Napi::Env env, int64_t id, Work work, std::shared_ptr<void> held = nullptr);
  void cancel(int64_t id);

 private:
  struct Job;
  void run_jobs();
  void add_thread();
  // Cancels all jobs and waits for the running ones. Their promises are not settled, because the environment is ending.
  void shut_down();

  static constexpr size_t kMaxThreads = 16;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::unordered_map<int64_t, std::shared_ptr<Job>> known_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ending_ = false;
  size_t pending_ = 0;  // promises not settled; used on the environment's thread only
  Napi::ThreadSafeFunction to_main_;
};

}  // namespace trawl_addon
