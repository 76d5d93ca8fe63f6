// Products with AVX2.
#if defined(__x86_64__)
#define TRAWL_TARGET __attribute__((target("avx2")))
#define TRAWL_ROWS 4
#define TRAWL_GROUPS 1
#include "encoder/lane_products.hpp"

namespace trawl::encoder {
namespace {
const Products kTable = {"avx2", multiply, add_bias, activate, normalize, softmax, divide};
}
const Products* const kAvx2Products = &kTable;
}  // namespace trawl::encoder
#else
#include "encoder/products.hpp"
namespace trawl::encoder {
const Products* const kAvx2Products = nullptr;
}
#endif
