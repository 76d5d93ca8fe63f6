#include "trawl/thread_pool.hpp"

#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "float_environment.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

struct Job {
  const std::function<void(int64_t)>& body;
  const int64_t count;
  int64_t next = 0;     // first item not handed out
  int64_t running = 0;  // items handed out and not returned
  std::exception_ptr error;
  std::condition_variable done;

  bool finished() const { return running == 0 && next >= count; }
};

int resolve_threads(int threads) {
  if (threads < 0 || threads > 4096) {
    throw Error(ErrorCode::kBadArgument, "thread count " + std::to_string(threads) + " is not in [0, 4096]");
  }
  if (threads > 0) return threads;
  const unsigned cores = std::thread::hardware_concurrency();  // honours the affinity mask on Linux
  return cores > 0 ? static_cast<int>(cores) : 1;
}

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable work;
  std::list<Job*> jobs;  // with items left to hand out; the front is served next, then goes to the back
  int target = 0;        // threads numbered target and up leave
  std::mutex resize_mutex;
  std::vector<std::thread> threads;  // guarded by resize_mutex

  void worker(int number) {
    const FloatEnvironment environment;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return number >= target || !jobs.empty(); });
      if (number >= target) return;
      Job* job = jobs.front();
      const int64_t item = job->next++;
      ++job->running;
      if (job->next >= job->count) {
        jobs.pop_front();
      } else if (jobs.size() > 1) {
        jobs.splice(jobs.end(), jobs, jobs.begin());
      }
      lock.unlock();
      std::exception_ptr error;
      try {
        job->body(item);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      --job->running;
      if (error) {
        if (!job->error) job->error = error;
        if (job->next < job->count) {
          job->next = job->count;
          jobs.remove(job);
        }
      }
      if (job->finished()) job->done.notify_all();
    }
  }

  void resize(int threads_wanted) {
    const std::lock_guard<std::mutex> resizing(resize_mutex);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      target = threads_wanted;
    }
    work.notify_all();
    while (static_cast<int>(threads.size()) > threads_wanted) {
      threads.back().join();
      threads.pop_back();
    }
    for (int number = static_cast<int>(threads.size()); number < threads_wanted; ++number) {
      threads.emplace_back([this, number] { worker(number); });
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_shared<State>()) { state_->resize(resolve_threads(threads)); }

ThreadPool::~ThreadPool() { state_->resize(0); }

void ThreadPool::set_threads(int threads) { state_->resize(resolve_threads(threads)); }

int ThreadPool::threads() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->target;
}

void ThreadPool::run(int64_t count, const std::function<void(int64_t)>& body) {
  if (count <= 0) return;
  Job job{body, count, 0, 0, nullptr, {}};
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->jobs.push_back(&job);
  lock.unlock();
  if (count == 1) {
    state_->work.notify_one();
  } else {
    state_->work.notify_all();
  }
  lock.lock();
  job.done.wait(lock, [&] { return job.finished(); });
  lock.unlock();
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace trawl
