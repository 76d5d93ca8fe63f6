// The engine's own threads, shared by every search and encoder that is given the pool.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace trawl {

class ThreadPool {
 public:
  // threads >= 1; 0 means one a core that this process may run on.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();  // waits for running jobs
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls body(i) for each i in [0, count), in any order, on the pool's threads, and returns when all are done.
  // The calling thread only waits. Calls from several threads share the pool fairly, item by item.
  // The first exception stops the handing out of further items and is rethrown here.
  // Must not be called from inside a body.
  void run(int64_t count, const std::function<void(int64_t)>& body);

  // Takes effect at once for idle threads and at the next item for busy ones. Same values as the constructor.
  void set_threads(int threads);
  int threads() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace trawl
