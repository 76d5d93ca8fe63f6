#include "jobs.hpp"

#include <system_error>

#include "errors.hpp"
#include "trawl/error.hpp"

namespace trawl_addon {

struct Jobs::Job {
  Job(Napi::Env env, int64_t id, Work work, std::shared_ptr<void> held)
      : id(id), work(std::move(work)), held(std::move(held)), deferred(Napi::Promise::Deferred::New(env)) {}
  const int64_t id;
  Work work;
  std::shared_ptr<void> held;
  Napi::Promise::Deferred deferred;
  std::atomic<bool> cancel{false};
  Deliver deliver;
  std::exception_ptr error;
};

Jobs::Jobs(Napi::Env env) {
  to_main_ = Napi::ThreadSafeFunction::New(env, Napi::Function::New(env, [](const Napi::CallbackInfo&) {}), "trawl", 0, 1);
  // Unreferenced while no job runs, so that an idle engine does not keep the process alive.
  to_main_.Unref(env);
  // Hooks run in reverse order: this hook ends the jobs before the hook of the thread-safe function that they use.
  env.AddCleanupHook([this] { shut_down(); });
}

void Jobs::shut_down() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    for (auto& [id, job] : known_) job->cancel = true;
    waiting_.clear();
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  to_main_.Abort();
}

Napi::Promise Jobs::start(Napi::Env env, int64_t id, Work work, std::shared_ptr<void> held) {
  auto job = std::make_shared<Job>(env, id, std::move(work), std::move(held));
  Napi::Promise promise = job->deferred.Promise();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (idle_ <= waiting_.size() && threads_.size() < kMaxThreads) add_thread();
    waiting_.push_back(job);
    known_[id] = job;
  }
  if (pending_++ == 0) to_main_.Ref(env);
  wake_.notify_one();
  return promise;
}

// If the system refuses another thread, the jobs share those that run.
void Jobs::add_thread() {
  try {
    threads_.emplace_back([this] { run_jobs(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
  }
}

void Jobs::cancel(int64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = known_.find(id);
  if (found != known_.end()) found->second->cancel = true;
}

void Jobs::run_jobs() {
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      ++idle_;
      wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      --idle_;
      if (ending_) return;
      job = waiting_.front();
      waiting_.pop_front();
    }
    try {
      if (job->cancel) throw trawl::Error(trawl::ErrorCode::kCancelled, "cancelled before it began");
      job->deliver = job->work(job->cancel);
    } catch (...) {
      job->error = std::current_exception();
    }
    job->work = nullptr;  // frees the index and the queries on this thread, not on the main thread
    {
      std::lock_guard<std::mutex> lock(mutex_);
      known_.erase(job->id);
      if (ending_) return;
    }
    to_main_.NonBlockingCall([this, job](Napi::Env env, Napi::Function) {
      if (--pending_ == 0) to_main_.Unref(env);
      job->held.reset();
      Napi::HandleScope scope(env);
      if (job->error) {
        job->deferred.Reject(error_value(env, job->error));
        return;
      }
      try {
        job->deferred.Resolve(job->deliver(env));
      } catch (...) {
        job->deferred.Reject(error_value(env, std::current_exception()));
      }
    });
  }
}

}  // namespace trawl_addon
