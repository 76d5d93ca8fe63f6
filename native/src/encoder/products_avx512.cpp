// Products with AVX-512 but without its instruction for bfloat16.
#if defined(__x86_64__)
#include <immintrin.h>
#define TRAWL_WIDE
#define TRAWL_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define TRAWL_ROWS 6
#define TRAWL_GROUPS 3
#define TRAWL_MULTIPLY_ADD(sum, a, b) ((Lanes)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(sum)))
#include "encoder/lane_products.hpp"

namespace trawl::encoder {
namespace {
const Products kTable = {"avx512", multiply, add_bias, activate, normalize, softmax, divide};
}
const Products* const kAvx512Products = &kTable;
}  // namespace trawl::encoder
#else
#include "encoder/products.hpp"
namespace trawl::encoder {
const Products* const kAvx512Products = nullptr;
}
#endif
