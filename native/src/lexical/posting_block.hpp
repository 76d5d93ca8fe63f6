// Up to 128 postings of one term, bit-packed. The gaps between rows share one bit width. The values tf - 1 share another, and larger
// values are exceptions.
//
//   header  byte 0: bits of a gap (0 to 32) in the low six bits. The high two bits: bits of tf - 1 if they are 0 to 2 and there are
//           no exceptions, else 3. Then byte 1 follows: bits of tf - 1 (0 to 31) in the low five bits, the number of exceptions in
//           the high three bits. 7 there means that byte 2 has the number.
//   gaps    row - previous row - 1; the caller passes the last row before the block
//   tfs     the low bits of tf - 1
//   exceptions  index in the block (one byte), then the bits of tf - 1 above the width (varint)
//
// A full block packs its values into four lanes of 32 values, value i in lane i % 4. SSE2 and NEON unpack four values at a time
// (D. Lemire and L. Boytsov, Decoding billions of integers per second through vectorization, 2015). A shorter block is a
// stream of bits, low bit first.
#pragma once
#include <cstdint>
#include <vector>

namespace trawl::lexical {

inline constexpr uint32_t kBlockPostings = 128;

struct Posting {
  uint32_t row;
  uint32_t tf;
};

// Unpacking a short block may read this many bytes past its end, so the file pads its lists with as many.
inline constexpr uint32_t kBlockPadding = 8;

// Appends a block of 1 to 128 postings with rising rows. The first row must be above `previous_row`, which is -1 for the first
// block of a list.
void encode_block(const Posting* postings, uint32_t count, int64_t previous_row, std::vector<uint8_t>& bytes);

// Decodes a block. Returns false if it does not end before `end`, or if its rows do not rise or are not below `rows`; the
// output is then undefined. `row_out` and `tf_out` must have room for 128 values.
bool decode_block(const uint8_t* begin, const uint8_t* end, uint32_t count, int64_t previous_row, uint32_t rows, uint32_t* row_out,
                  uint32_t* tf_out);

}  // namespace trawl::lexical
