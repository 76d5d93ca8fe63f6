// Products in int8 for every processor.
#define TRAWL_NAME "portable"
#define TRAWL_TARGET
#define TRAWL_ROWS 2
#define TRAWL_GROUPS 1
#include "encoder/lane_bytes.hpp"

namespace trawl::encoder {
namespace {

template <int R, int V>
TRAWL_INLINE void add_products(const uint8_t* a, int64_t depth, const int8_t* panel, int64_t groups, IntLanes (&sums)[R][V]) {
  static_assert(V == 1, "a group of columns at a time");
  // Without a sign, because a sum may pass the end of 32 bits before it is complete.
  BitLanes sum[R];
  for (int r = 0; r < R; ++r) sum[r] = reinterpret_cast<BitLanes>(sums[r][0]);
  for (int64_t k = 0; k < depth; k += 4, panel += groups * 4 * kFloatLanes) {
    IntLanes codes;
    std::memcpy(&codes, panel, 64);
    for (int i = 0; i < 4; ++i) {
      const BitLanes weights = reinterpret_cast<BitLanes>((codes << (24 - 8 * i)) >> 24);
      for (int r = 0; r < R; ++r) sum[r] = sum[r] + weights * uint32_t{a[r * depth + k + i]};
    }
  }
  for (int r = 0; r < R; ++r) sums[r][0] = reinterpret_cast<IntLanes>(sum[r]);
}

}  // namespace
}  // namespace trawl::encoder

#include "encoder/byte_blocks.hpp"
#include "encoder/byte_table.hpp"

namespace trawl::encoder {
const ByteProducts* const kPortableByteProducts = &kTable;
}  // namespace trawl::encoder
