#include "lexical/posting_block.hpp"

#include <algorithm>
#include <cstring>

#include "lexical/varint.hpp"

namespace trawl::lexical {
namespace {

constexpr uint32_t kStreams = 4;
typedef uint32_t Lanes __attribute__((vector_size(16)));

uint32_t bit_width(uint32_t value) { return value == 0 ? 0 : 32 - static_cast<uint32_t>(__builtin_clz(value)); }

uint32_t packed_bytes(uint32_t count, uint32_t bits) { return count == kBlockPostings ? 16 * bits : (count * bits + 7) / 8; }

void append_word(std::vector<uint8_t>& bytes, uint32_t word) {
  for (int i = 0; i < 4; i++) bytes.push_back(static_cast<uint8_t>(word >> 8 * i));
}

void pack_lanes(const uint32_t* values, uint32_t bits, std::vector<uint8_t>& bytes) {
  uint64_t pending[kStreams] = {};
  uint32_t filled = 0;
  for (uint32_t i = 0; i < kBlockPostings / kStreams; i++) {
    for (uint32_t lane = 0; lane < kStreams; lane++) {
      pending[lane] |= static_cast<uint64_t>(values[kStreams * i + lane]) << filled;
    }
    filled += bits;
    if (filled < 32) continue;
    for (uint64_t& word : pending) {
      append_word(bytes, static_cast<uint32_t>(word));
      word >>= 32;
    }
    filled -= 32;
  }
}

void pack_stream(const uint32_t* values, uint32_t count, uint32_t bits, std::vector<uint8_t>& bytes) {
  uint64_t pending = 0;
  uint32_t filled = 0;
  for (uint32_t i = 0; i < count; i++) {
    pending |= static_cast<uint64_t>(values[i]) << filled;
    for (filled += bits; filled >= 8; filled -= 8, pending >>= 8) bytes.push_back(static_cast<uint8_t>(pending));
  }
  if (filled > 0) bytes.push_back(static_cast<uint8_t>(pending));
}

void pack(const uint32_t* values, uint32_t count, uint32_t bits, std::vector<uint8_t>& bytes) {
  if (bits == 0) return;
  if (count == kBlockPostings) {
    pack_lanes(values, bits, bytes);
  } else {
    pack_stream(values, count, bits, bytes);
  }
}

Lanes load(const uint8_t* at) {
  Lanes lanes;
  std::memcpy(&lanes, at, sizeof lanes);
  return lanes;
}

// The width is a template parameter, so the shifts and the word boundaries are constants.
template <uint32_t Bits>
void unpack_lanes(const uint8_t* in, uint32_t* out) {
  if constexpr (Bits == 0) {
    std::memset(out, 0, kBlockPostings * sizeof(uint32_t));
  } else {
    constexpr uint32_t mask = Bits == 32 ? ~0u : (1u << Bits % 32) - 1;
    Lanes word = load(in);
#pragma GCC unroll 32
    for (uint32_t i = 0; i < kBlockPostings / kStreams; i++) {
      const uint32_t bit = i * Bits % 32;
      const uint32_t index = i * Bits / 32;
      Lanes value = word >> bit;
      if (bit + Bits >= 32 && index + 1 < Bits) {
        word = load(in + 16 * (index + 1));
        if (bit + Bits > 32) value |= word << (32 - bit);
      }
      value &= mask;
      std::memcpy(out + kStreams * i, &value, sizeof value);
    }
  }
}

using Unpack = void (*)(const uint8_t*, uint32_t*);
template <uint32_t... Bits>
constexpr void fill(Unpack (&table)[33], std::integer_sequence<uint32_t, Bits...>) {
  ((table[Bits] = unpack_lanes<Bits>), ...);
}
struct UnpackTable {
  Unpack of[33];
  constexpr UnpackTable() : of() { fill(of, std::make_integer_sequence<uint32_t, 33>()); }
};
constexpr UnpackTable kUnpack;

void unpack_stream(const uint8_t* in, uint32_t count, uint32_t bits, uint32_t* out) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (uint32_t i = 0, bit = 0; i < count; i++, bit += bits) {
    uint64_t word;
    std::memcpy(&word, in + bit / 8, sizeof word);
    out[i] = static_cast<uint32_t>(word >> bit % 8 & mask);
  }
}

void unpack(const uint8_t* in, uint32_t count, uint32_t bits, uint32_t* out) {
  if (count == kBlockPostings) {
    kUnpack.of[bits](in, out);
  } else {
    unpack_stream(in, count, bits, out);
  }
}

// The widths and the number of exceptions of a block.
struct BlockHeader {
  uint32_t gap_bits;
  uint32_t tf_bits;
  uint32_t exceptions;
};

constexpr uint32_t kLongHeader = 3;      // in place of the bits of tf - 1
constexpr uint32_t kManyExceptions = 7;  // in place of the number of exceptions

uint32_t header_bytes(uint32_t tf_bits, uint32_t exceptions) {
  if (tf_bits < kLongHeader && exceptions == 0) return 1;
  return exceptions < kManyExceptions ? 2 : 3;
}

void append_header(const BlockHeader& header, std::vector<uint8_t>& bytes) {
  const uint32_t size = header_bytes(header.tf_bits, header.exceptions);
  bytes.push_back(static_cast<uint8_t>(header.gap_bits | (size == 1 ? header.tf_bits : kLongHeader) << 6));
  if (size == 1) return;
  bytes.push_back(static_cast<uint8_t>(header.tf_bits | std::min(header.exceptions, kManyExceptions) << 5));
  if (size == 3) bytes.push_back(static_cast<uint8_t>(header.exceptions));
}

// Moves `at` past the header. Returns false if the header does not end before `end`.
bool read_header(const uint8_t*& at, const uint8_t* end, BlockHeader& header) {
  if (at == end) return false;
  header = {*at & 63u, static_cast<uint32_t>(*at >> 6), 0};
  at++;
  if (header.tf_bits != kLongHeader) return true;
  if (at == end) return false;
  header.tf_bits = *at & 31u;
  header.exceptions = *at >> 5;
  at++;
  if (header.exceptions != kManyExceptions) return true;
  if (at == end) return false;
  header.exceptions = *at++;
  return true;
}

// The width of tf - 1 that needs the fewest bytes. A value that does not fit becomes an exception of two or more bytes.
uint32_t best_tf_bits(const uint32_t* values, uint32_t count) {
  uint32_t of_width[33] = {};
  for (uint32_t i = 0; i < count; i++) of_width[bit_width(values[i])]++;
  uint32_t best = 31;
  uint32_t best_bytes = ~0u;
  uint32_t exceptions = 0;
  for (uint32_t bits = 32; bits-- > 0;) {
    exceptions += of_width[bits + 1];
    const uint32_t bytes = header_bytes(bits, exceptions) + packed_bytes(count, bits) + 2 * exceptions;
    if (exceptions < 256 && bytes <= best_bytes) {
      best_bytes = bytes;
      best = bits;
    }
  }
  return best;
}

// Lanes of two vectors, numbered through both. clang has only the first builtin, GCC before 12 only the second.
#if defined(__clang__) || __GNUC__ >= 12
#define TRAWL_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TRAWL_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Lanes{__VA_ARGS__})
#endif

// Converts gaps to rows, four at a time, by a prefix sum over the lanes and one over the vectors.
void sum_gaps(uint32_t* rows, uint32_t count, uint32_t first_base) {
  uint32_t row = first_base;
  uint32_t i = 0;
  Lanes base = {row, row, row, row};
  for (; i + kStreams <= count; i += kStreams) {
    Lanes value;
    std::memcpy(&value, rows + i, sizeof value);
    value += 1u;
    const Lanes zero = {};
    value += TRAWL_SHUFFLE(value, zero, 4, 0, 1, 2);
    value += TRAWL_SHUFFLE(value, zero, 4, 4, 0, 1);
    value += base;
    std::memcpy(rows + i, &value, sizeof value);
    base = TRAWL_SHUFFLE(value, value, 3, 3, 3, 3);
  }
  row = base[0];
  for (; i < count; i++) rows[i] = row += rows[i] + 1;
}

}  // namespace

void encode_block(const Posting* postings, uint32_t count, int64_t previous_row, std::vector<uint8_t>& bytes) {
  uint32_t gaps[kBlockPostings];
  uint32_t tfs[kBlockPostings];
  uint32_t all_gaps = 0;
  int64_t previous = previous_row;
  for (uint32_t i = 0; i < count; i++) {
    gaps[i] = static_cast<uint32_t>(postings[i].row - previous - 1);
    all_gaps |= gaps[i];
    tfs[i] = postings[i].tf - 1;
    previous = postings[i].row;
  }
  const uint32_t gap_bits = bit_width(all_gaps);
  const uint32_t tf_bits = best_tf_bits(tfs, count);
  std::vector<uint8_t> exceptions;
  uint32_t exception_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (tfs[i] >> tf_bits == 0) continue;
    exceptions.push_back(static_cast<uint8_t>(i));
    append_varint(exceptions, tfs[i] >> tf_bits);
    tfs[i] &= (1u << tf_bits) - 1;
    exception_count++;
  }
  append_header({gap_bits, tf_bits, exception_count}, bytes);
  pack(gaps, count, gap_bits, bytes);
  pack(tfs, count, tf_bits, bytes);
  bytes.insert(bytes.end(), exceptions.begin(), exceptions.end());
}

bool decode_block(const uint8_t* begin, const uint8_t* end, uint32_t count, int64_t previous_row, uint32_t rows, uint32_t* row_out,
                  uint32_t* tf_out) {
  const uint8_t* at = begin;
  BlockHeader header;
  if (!read_header(at, end, header) || header.gap_bits > 32) return false;
  const auto [gap_bits, tf_bits, exceptions] = header;
  const uint32_t gap_bytes = packed_bytes(count, gap_bits);
  const uint32_t tf_bytes = packed_bytes(count, tf_bits);
  if (end - at < static_cast<int64_t>(gap_bytes) + tf_bytes) return false;
  unpack(at, count, gap_bits, row_out);
  at += gap_bytes;
  unpack(at, count, tf_bits, tf_out);
  at += tf_bytes;
  for (uint32_t i = 0; i < exceptions; i++) {
    if (at == end) return false;
    const uint32_t index = *at++;
    uint64_t high;
    if (index >= count || !read_varint(at, end, high) || high >> (31 - tf_bits) != 0) return false;
    tf_out[index] |= static_cast<uint32_t>(high) << tf_bits;
  }
  for (uint32_t i = 0; i < count; i++) tf_out[i]++;
  // In a damaged block the 32-bit sums of sum_gaps() may wrap, so check the last row with a 64-bit sum first.
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += row_out[i];
  if (previous_row + static_cast<int64_t>(sum) + count >= static_cast<int64_t>(rows)) return false;
  sum_gaps(row_out, count, static_cast<uint32_t>(previous_row));
  return true;
}

}  // namespace trawl::lexical
