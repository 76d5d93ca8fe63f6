#include "encoder/thread_team.hpp"

#include <algorithm>
#include <system_error>

#include "base/float_environment.hpp"

namespace trawl::encoder {

namespace {

// About a step of a small model. Then the thread lets others run, because one that holds an item may wait for this core.
constexpr int kSpins = 2000;

void wait_a_little(int& spins) {
  if (++spins > kSpins) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    awake_ = -1;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::begin(int64_t members) {
  members = std::max<int64_t>(1, std::min(members, kMost));
  while (static_cast<int64_t>(threads_.size()) < members - 1) {
    const auto member = static_cast<int64_t>(threads_.size()) + 1;
    try {
      threads_.emplace_back([this, member] { help(member); });
    } catch (const std::system_error&) {
      members = member;
    }
  }
  members_ = members;
  if (members == 1) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    awake_ = members;
  }
  wake_.notify_all();
}

void ThreadTeam::end() {
  if (members_ == 1) return;
  members_ = 1;
  const std::lock_guard<std::mutex> lock(mutex_);
  awake_ = 0;
}

void ThreadTeam::share(int64_t count) {
  done_.store(0, std::memory_order_relaxed);
  next_.store(static_cast<uint64_t>(members_) << 56 | static_cast<uint64_t>(count) << kCountBits, std::memory_order_release);
  while (take(0)) {
  }
  for (int spins = 0; done_.load(std::memory_order_acquire) < count;) wait_a_little(spins);
}

bool ThreadTeam::take(int64_t member) {
  uint64_t seen = next_.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t item = seen & kCountMask;
    if (item >= (seen >> kCountBits & kCountMask) || static_cast<uint64_t>(member) >= seen >> 56) return false;
    if (next_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      body_(context_, static_cast<int64_t>(item), member);
      done_.fetch_add(1, std::memory_order_release);
      return true;
    }
  }
}

void ThreadTeam::help(int64_t member) {
  const FloatEnvironment environment;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return awake_ < 0 || awake_ > member; });
    if (awake_ < 0) return;
    lock.unlock();
    for (int spins = 0; awake_.load(std::memory_order_relaxed) > member;) {
      if (take(member)) {
        spins = 0;
      } else {
        wait_a_little(spins);
      }
    }
    lock.lock();
  }
}

}  // namespace trawl::encoder
