// Threads that divide the steps of one forward pass, which take microseconds each: too short for the ThreadPool, whose threads sleep
// between jobs. Here they spin until the pass ends.
//
// Whoever is free takes the next item of a step, the calling thread too, and it waits only for items that others hold. So a thread
// that the system does not run, or that wakes late, leaves the calling thread with more items and delays it by one item at most.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace trawl::encoder {

class ThreadTeam {
 public:
  static constexpr int64_t kMost = 8;  // members; more would find no item in a step of a small model

  ThreadTeam() = default;
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Wakes `members` - 1 threads, at most kMost - 1, and starts those that are missing. If the system refuses to start one, there are
  // fewer. One pass at a time.
  void begin(int64_t members);
  // The threads sleep again.
  void end();
  // Those of this pass, the calling thread included.
  int64_t members() const { return members_; }

  // Calls body(item, member) for each item in [0, count), and returns when all are done. No two calls at the same time have the same
  // member, a number below members(). body must not throw.
  template <typename Body>
  void divide(int64_t count, const Body& body) {
    if (members_ <= 1 || count <= 1) {
      for (int64_t item = 0; item < count; ++item) body(item, int64_t{0});
      return;
    }
    body_ = [](const void* context, int64_t item, int64_t member) { (*static_cast<const Body*>(context))(item, member); };
    context_ = &body;
    share(count);
  }

 private:
  // What to take: members << 56 | count << 28 | next item. A thread that is left from an earlier pass with more members takes nothing.
  static constexpr int kCountBits = 28;
  static constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;

  void share(int64_t count);
  bool take(int64_t member);
  void help(int64_t member);

  int64_t members_ = 1;
  void (*body_)(const void* context, int64_t item, int64_t member) = nullptr;
  const void* context_ = nullptr;
  alignas(64) std::atomic<uint64_t> next_{0};
  alignas(64) std::atomic<int64_t> done_{0};
  alignas(64) std::atomic<int64_t> awake_{0};  // members of the pass, 0 between passes, -1 at the end; changed under mutex_
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> threads_;
};

}  // namespace trawl::encoder
