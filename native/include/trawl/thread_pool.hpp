// The engine's threads. All searches, writers and verifications with the same pool share them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace trawl {

class ThreadPool {
 public:
  static constexpr int64_t kMaxThreads = 4096;

  // Throws kBadArgument unless `threads` is in [1, kMaxThreads]. The threads start with the first run().
  explicit ThreadPool(int64_t threads);
  ~ThreadPool();  // waits for running jobs
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls body(i) for each i in [0, count), in any order, on the pool's threads, and returns when all are done.
  // The calling thread only waits. Calls from several threads share the pool fairly, item by item.
  // After the first exception no further item starts, and run() rethrows the exception.
  // Must not be called from inside a body. Throws kNoThreads if the system refuses to start any thread.
  void run(int64_t count, const std::function<void(int64_t)>& body);

  // Takes effect at once for idle threads and after the current item for busy ones. Same limits as the constructor.
  void set_threads(int64_t threads);
  // The requested number, or a smaller one if the system refused to start more threads.
  int64_t threads() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trawl
