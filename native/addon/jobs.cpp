#include "jobs.hpp"

#include "trawl/error.hpp"

namespace trawl_addon {

struct Jobs::Job {
  Job(Napi::Env env, double id, Work work) : id(id), work(std::move(work)), deferred(Napi::Promise::Deferred::New(env)) {}
  const double id;
  Work work;
  Napi::Promise::Deferred deferred;
  std::atomic<bool> cancel{false};
  Deliver deliver;
  std::exception_ptr error;
};

Jobs::Jobs(Napi::Env env) {
  to_main_ = Napi::ThreadSafeFunction::New(env, Napi::Function::New(env, [](const Napi::CallbackInfo&) {}), "trawl", 0, 1);
  // Held only while jobs are under way, so that an idle engine does not keep the process alive.
  to_main_.Unref(env);
  // Hooks run in reverse order: this one before the one that takes the thread-safe function away.
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

Napi::Promise Jobs::start(Napi::Env env, double id, Work work) {
  auto job = std::make_shared<Job>(env, id, std::move(work));
  Napi::Promise promise = job->deferred.Promise();
  if (unsettled_++ == 0) to_main_.Ref(env);
  std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(job);
  known_[id] = job;
  if (idle_ < waiting_.size() && threads_.size() < kMaxThreads) threads_.emplace_back([this] { run_jobs(); });
  wake_.notify_one();
  return promise;
}

void Jobs::cancel(double id) {
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
    job->work = nullptr;  // lets go of the index and the queries here, not on the main thread
    {
      std::lock_guard<std::mutex> lock(mutex_);
      known_.erase(job->id);
      if (ending_) return;
    }
    to_main_.NonBlockingCall([this, job](Napi::Env env, Napi::Function) {
      if (--unsettled_ == 0) to_main_.Unref(env);
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

Napi::Value error_value(Napi::Env env, std::exception_ptr error) {
  const auto make = [&](const char* message, const char* code, double item, double column) {
    Napi::Error made = Napi::Error::New(env, message);
    made.Set("code", Napi::String::New(env, code));
    made.Set("item", Napi::Number::New(env, item));
    made.Set("column", Napi::Number::New(env, column));
    return made.Value();
  };
  try {
    std::rethrow_exception(error);
  } catch (const trawl::Error& known) {
    return make(known.what(), trawl::error_code_name(known.code), static_cast<double>(known.item),
                static_cast<double>(known.column));
  } catch (const Napi::Error& thrown) {
    return thrown.Value();
  } catch (const std::bad_alloc&) {
    return make("The engine could not get the memory it needs.", "OUT_OF_MEMORY", -1, -1);
  } catch (const std::exception& other) {
    return make(other.what(), "INTERNAL", -1, -1);
  }
}

}  // namespace trawl_addon
