// Work that must not run on Node's main thread nor on libuv's four threads (a search waits there for the engine's pool,
// and four waiting searches would leave no thread for file reading). A job is run by one of a few threads of our own and
// its promise is settled on the thread of the environment that asked.
#pragma once
#include <napi.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace trawl_addon {

// What a job leaves behind: called on the environment's thread, gives the value of the promise.
using Deliver = std::function<Napi::Value(Napi::Env)>;
// Runs off the main thread; `cancel` becomes true when the caller gave up.
using Work = std::function<Deliver(const std::atomic<bool>& cancel)>;

// One per environment (the main thread and each worker thread that loads the addon).
class Jobs {
 public:
  explicit Jobs(Napi::Env env);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // `id` is the caller's name for the job, used by cancel(); ids of running jobs have to differ.
  Napi::Promise start(Napi::Env env, double id, Work work);
  void cancel(double id);

 private:
  struct Job;
  void run_jobs();
  // Cancels what runs and waits for it. Promises that are not settled by then stay so: the environment is ending.
  void shut_down();

  static constexpr size_t kMaxThreads = 16;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::unordered_map<double, std::shared_ptr<Job>> known_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ending_ = false;
  size_t unsettled_ = 0;
  Napi::ThreadSafeFunction to_main_;
};

// The error as JavaScript gets it: message, code (the core's name), item, column.
Napi::Value error_value(Napi::Env env, std::exception_ptr error);

}  // namespace trawl_addon
