#include "trawl/thread_pool.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/float_environment.hpp"
#include "trawl/error.hpp"

namespace trawl {

namespace {

struct Job {
  const std::function<void(int64_t)>& body;
  const int64_t count;
  int64_t next = 0;     // first item that has not started
  int64_t running = 0;  // items that have started and not ended
  std::exception_ptr error;
  std::condition_variable done;

  bool finished() const { return running == 0 && next >= count; }
};

int64_t checked_threads(int64_t threads) {
  if (threads >= 1 && threads <= ThreadPool::kMaxThreads) return threads;
  throw Error(ErrorCode::kBadArgument,
              "thread count " + std::to_string(threads) + " is not in [1, " + std::to_string(ThreadPool::kMaxThreads) + "]");
}

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable work;
  std::list<Job*> jobs;  // jobs with items left to start, in round-robin order: the next item is from the front job
  int64_t target = 0;    // threads with a number of at least `target` end
  std::atomic<bool> started{false};
  std::mutex resize_mutex;
  std::vector<std::thread> threads;  // guarded by resize_mutex

  void worker(int64_t number) {
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

  void resize(int64_t wanted) {
    const std::lock_guard<std::mutex> resizing(resize_mutex);
    set_target(wanted);
    if (started) adjust(wanted);
  }

  void start() {
    const std::lock_guard<std::mutex> resizing(resize_mutex);
    if (started) return;
    adjust(target);
    started = true;
  }

  void set_target(int64_t wanted) {
    const std::lock_guard<std::mutex> lock(mutex);
    target = wanted;
  }

  // Starts or ends threads until there are `wanted`, or as many as the system allows. The caller must hold resize_mutex.
  void adjust(int64_t wanted) {
    work.notify_all();
    while (static_cast<int64_t>(threads.size()) > wanted) {
      threads.back().join();
      threads.pop_back();
    }
    while (static_cast<int64_t>(threads.size()) < wanted) {
      const auto number = static_cast<int64_t>(threads.size());
      try {
        threads.emplace_back([this, number] { worker(number); });
      } catch (const std::system_error& refused) {
        if (threads.empty()) {
          throw Error(ErrorCode::kNoThreads,
                      "no search thread could be started: " + std::string(refused.what()) + "; raise the limit of threads or memory");
        }
        return set_target(number);
      }
    }
  }
};

ThreadPool::ThreadPool(int64_t threads) : state_(std::make_unique<State>()) { state_->target = checked_threads(threads); }

ThreadPool::~ThreadPool() { state_->resize(0); }

void ThreadPool::set_threads(int64_t threads) { state_->resize(checked_threads(threads)); }

int64_t ThreadPool::threads() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->target;
}

void ThreadPool::run(int64_t count, const std::function<void(int64_t)>& body) {
  if (count <= 0) return;
  if (!state_->started) state_->start();
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
