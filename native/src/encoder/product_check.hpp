// Whether a processor sums products as products.hpp defines. The manuals of vdpbf16ps state the order of its two sums, but only a
// processor that was tried is known to keep it.
#pragma once
#include "encoder/byte_products.hpp"
#include "encoder/products.hpp"

namespace trawl::encoder {

// Compares one product of cancelling values with the portable one, bit by bit. Takes microseconds.
bool sums_as_defined(const Products& products);
// The same of products in int8.
bool sums_as_defined(const ByteProducts& products);

}  // namespace trawl::encoder
