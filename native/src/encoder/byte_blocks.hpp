// Products in int8 whose sums are in registers, in blocks of rows and columns. A file of an instruction set defines add_products() before,
// which adds the products of R rows and V groups of 16 columns to their sums:
//   template <int R, int V>
//   void add_products(const uint8_t* a, int64_t depth, const int8_t* panel, int64_t groups, IntLanes (&sums)[R][V]);
// TRAWL_ROWS and TRAWL_GROUPS are the largest R and V whose sums fit its registers.

namespace trawl::encoder {
namespace {

// Writes the values of R rows from `to` on, which are `stride` apart.
template <int R, int V, typename To>
TRAWL_INLINE void tile(const ByteTask& t, int64_t row, int64_t column, const int8_t* panel, int64_t groups, To* to, int64_t stride) {
  IntLanes sums[R][V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    IntLanes first;
    std::memcpy(&first, t.offset_corrections + column + v * kFloatLanes, 64);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][v] = first;
  }
  add_products<R, V>(t.a + row * t.depth, t.depth, panel, groups, sums);
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const int64_t at = column + v * kFloatLanes;
    const Lanes scale = load(t.column_scales + at), bias = load(t.bias + at);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      put(to + r * stride + v * kFloatLanes, value_of(sums[r][v], t.row_scales[row + r], scale, bias));
    }
  }
}

template <int R, int V, typename To>
TRAWL_INLINE void put_block(const ByteTask& t, int64_t row, int64_t column, const int8_t* panel, int64_t groups, const Write<To>& step) {
  tile<R, V>(t, row, column, panel, groups, step.to + row * t.columns + column, t.columns);
}
// Through a buffer, because the activation needs the registers of the sums.
template <int R, int V>
TRAWL_INLINE void put_block(const ByteTask& t, int64_t row, int64_t column, const int8_t* panel, int64_t groups, const Activate& step) {
  alignas(64) float values[R * V * kFloatLanes];
  tile<R, V>(t, row, column, panel, groups, values, V * kFloatLanes);
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < V * kFloatLanes; c += kFloatLanes)
      step.put_at((row + r) * t.columns + column + c, load(values + r * V * kFloatLanes + c));
  }
}

// The last rows, at most R of them.
template <int R, int V, typename Step>
TRAWL_INLINE void last_rows(const ByteTask& t, int64_t row, int64_t column, const int8_t* panel, int64_t groups, const Step& step) {
  if constexpr (R > 0) {
    if (t.rows - row == R) return put_block<R, V>(t, row, column, panel, groups, step);
    last_rows<R - 1, V>(t, row, column, panel, groups, step);
  }
}

template <int V, typename Step>
TRAWL_INLINE void all_rows(const ByteTask& t, int64_t column, const int8_t* panel, int64_t groups, const Step& step) {
  int64_t row = 0;
  for (; row + TRAWL_ROWS <= t.rows; row += TRAWL_ROWS) put_block<TRAWL_ROWS, V>(t, row, column, panel, groups, step);
  last_rows<TRAWL_ROWS - 1, V>(t, row, column, panel, groups, step);
}

template <typename Step>
TRAWL_INLINE void multiply_panels(const ByteTask& t, int64_t first, int64_t last, const Step& step) {
  for (int64_t p = first; p < last; ++p) {
    const int64_t left = t.columns - p * kPanel, groups = (left < kPanel ? left : kPanel) / kFloatLanes, column = p * kPanel;
    const int8_t* panel = t.packed + column * t.depth;
    int64_t v = 0;
    for (; v + TRAWL_GROUPS <= groups; v += TRAWL_GROUPS)
      all_rows<TRAWL_GROUPS>(t, column + v * kFloatLanes, panel + v * 4 * kFloatLanes, groups, step);
    for (; v < groups; ++v) all_rows<1>(t, column + v * kFloatLanes, panel + v * 4 * kFloatLanes, groups, step);
  }
}

}  // namespace
}  // namespace trawl::encoder
