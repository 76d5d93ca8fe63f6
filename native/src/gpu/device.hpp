// The instructions of the GPU that scan.cu uses, for nvcc. The test double (test/cuda_double.cpp) has others of the same names.
#pragma once
#include "cuda_kernels.hpp"

#define TRAWL_DEVICE __device__ __forceinline__
// blocks: the number that a multiprocessor has room for.
#define TRAWL_KERNEL(blocks) extern "C" __global__ void __launch_bounds__(trawl::cuda::kThreads, blocks)

namespace trawl::cuda {

TRAWL_DEVICE uint32_t thread_index() { return threadIdx.x; }
TRAWL_DEVICE uint32_t block_index() { return blockIdx.x; }
TRAWL_DEVICE uint32_t block_count() { return gridDim.x; }
TRAWL_DEVICE uint8_t* shared_memory() {
  extern __shared__ __align__(128) uint8_t shared[];
  return shared;
}
TRAWL_DEVICE void sync_threads() { __syncthreads(); }
template <typename T>
TRAWL_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
TRAWL_DEVICE int dot_of_four(int a, int b, int sum) { return __dp4a(a, b, sum); }
TRAWL_DEVICE int4 load_once(const int4* at) { return __ldcs(at); }
TRAWL_DEVICE uint32_t add_to_count(uint32_t* count) { return atomicAdd(count, 1u); }
TRAWL_DEVICE uint32_t read_count(const uint32_t* count) { return *static_cast<const volatile uint32_t*>(count); }
TRAWL_DEVICE void raise(unsigned long long* maximum, unsigned long long key) { atomicMax(maximum, key); }
TRAWL_DEVICE uint32_t bits_of(float value) { return __float_as_uint(value); }

// Copies 16 bytes to shared memory without waiting.
TRAWL_DEVICE void copy_async(uint8_t* shared, const void* global) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
TRAWL_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `left` of the committed groups of copies are on their way.
template <int left>
TRAWL_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

// Four 8 x 16 byte matrices: lane i gives the address of row i % 8 of matrix i / 8, and gets bytes 4 * (i % 4) on of row i / 4
// of each.
TRAWL_DEVICE void load_matrices(uint32_t (&values)[4], const uint8_t* shared) {
  const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(from)
               : "memory");
}
// sums[16 x 8] += a[16 x 32] b[32 x 8], int8 to int32.
TRAWL_DEVICE void multiply_add(int (&sums)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace trawl::cuda
