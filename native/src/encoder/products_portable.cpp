// Products for every processor, in the order of sums that products.hpp defines.
#define TRAWL_TARGET
#define TRAWL_ROWS 2
#define TRAWL_GROUPS 1
#include "encoder/lane_products.hpp"

namespace trawl::encoder {
namespace {
const Products kTable = {"portable", multiply, add_bias, activate, normalize, softmax, divide};
}
const Products* const kPortableProducts = &kTable;
}  // namespace trawl::encoder
