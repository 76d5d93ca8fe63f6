// The format of a `.bm25` file: the inverted index of one field of one shard. Only LexicalWriter and LexicalFile know byte
// offsets. Little endian.
//
//   header      LexicalHeader, 256 bytes
//   lists       the posting lists in the order of their terms; a term that occurs in one row has none
//   lengths     uint8[rows]: length code of each row (similarity.hpp), 0 if the field has no token
//   terms       blocks of 32 terms, sorted by their UTF-8 bytes, front-coded
//   term index  a TermBlockPlace for each block of terms, and one for the end of the last block
//
// A term: one byte with the number of bytes shared with the term before it in its block (0 for the first) in the high four bits,
// and the number of further bytes in the low four bits. 15 in either means 15 or more: a varint with the number less 15 follows,
// for the shared bytes first. Then the further bytes, and a varint: 0 if the term occurs once, in one row; else df. Then, if
// it occurs once: varint row. If df is 1: varint row, varint tf - 1. Else varint number of bytes of its list.
//
// A list of up to 128 postings is one block (posting_block.hpp). A longer one is
//   BoundPairs          for the whole list
//   BlockHead[blocks]   one per block; there are ceil(df / 128) blocks
//   blocks              128 postings each; the last block has the rest
//
// BoundPairs holds up to four (tf, length code) pairs; unused ones repeat the last. For each posting there is a pair that
// dominates it: its tf is at least as large and its length code at most as large. So the largest score of the pairs bounds the score of every
// posting, for any k1, b and weight (see similarity.hpp). A tf of 255 stands for any number.
//
// Version history
//   1  first
#pragma once
#include <cstdint>

namespace trawl::lexical {

inline constexpr uint32_t kLexicalVersion = 1;
inline constexpr char kLexicalMagic[8] = {'T', 'R', 'A', 'W', 'L', 'B', 'M', '\n'};
inline constexpr uint32_t kTermsPerBlock = 32;
// Each half of the first byte of a term; a half with all bits set is continued by a varint.
inline constexpr uint32_t kHalfByte = 15;
inline constexpr uint32_t kUnboundedTf = 255;

struct Section {
  uint64_t offset;
  uint64_t bytes;
  uint64_t checksum;  // section_checksum of the bytes
};

struct LexicalHeader {
  char magic[8];
  uint32_t version;
  uint32_t analyser;
  uint64_t rows;       // rows of the shard, below 2^32
  uint64_t documents;  // rows with at least one token
  uint64_t tokens;     // tokens of all rows
  uint64_t terms;
  uint64_t postings;
  Section lists;
  Section lengths;
  Section terms_section;
  Section term_index;
  uint64_t longest_code;  // largest length code of a row
  uint64_t reserved[11];  // zero
  uint64_t checksum;      // of the header with this field zero
};
static_assert(sizeof(LexicalHeader) == 256, "part of the file format");

struct TermBlockPlace {
  uint64_t terms;  // byte of the terms section where the block begins
  uint64_t lists;  // byte of the lists section where the lists of its terms begin
};

struct BoundPair {
  uint8_t tf;
  uint8_t length_code;
};

struct BoundPairs {
  BoundPair of[4];
};
static_assert(sizeof(BoundPairs) == 8, "part of the file format");

struct BlockHead {
  uint32_t last_row;
  uint32_t offset;  // of the block's bytes, from the end of the heads
  BoundPairs bounds;
};
static_assert(sizeof(BlockHead) == 16, "part of the file format");

}  // namespace trawl::lexical
