// An array of fixed length, aligned to a cache line and initialised to zeros.
#pragma once
#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace trawl {

template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivial<T>::value, "the buffer does not run constructors or destructors");

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t count)
      : data_(static_cast<T*>(::operator new(count * sizeof(T) + 1, std::align_val_t(64)))), count_(count) {
    std::memset(static_cast<void*>(data_), 0, count * sizeof(T));
  }
  ~AlignedBuffer() { ::operator delete(static_cast<void*>(data_), std::align_val_t(64)); }
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return count_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  void swap(AlignedBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
  }
  T* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace trawl
