// Lucene's StandardTokenizer (9.1 and later): takes the longest match at each position, and skips one code point if no rule
// matches. native/unicode/generate-tables.mjs generates the automaton.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lexical/unicode_tables.hpp"
#include "lexical/utf8.hpp"

namespace trawl::lexical {

// Numbers of the automaton's rules.
enum TokenType : uint8_t {
  kEmoji = 1,
  kNum,
  kHangul,
  kKatakana,
  kAlphanum,
  kSoutheastAsian,
  kIdeographic,
  kHiragana,
};

struct Token {
  size_t begin;  // bytes [begin, end) of the text
  size_t end;
  TokenType type;
};

// A match has at most this many UTF-16 units; the rest of a longer word becomes another token.
inline constexpr uint32_t kMaxTokenUnits = 255;

inline uint8_t class_of(uint32_t code) { return kClassBlocks[kClassBlockOf[code >> 8]][code & 255]; }

// Finds the first token at or after byte `from`. Returns false if there is none.
inline bool next_token(std::string_view text, size_t from, Token& token) {
  for (size_t begin = from; begin < text.size();) {
    uint8_t state = 1;
    uint8_t rule = 0;
    size_t end = begin;
    uint32_t units = 0;
    size_t first_bytes = 1;
    for (size_t at = begin; at < text.size();) {
      const auto byte = static_cast<uint8_t>(text[at]);
      const CodePoint code = byte < 0x80 ? CodePoint{byte, 1} : code_point_at(text, at);
      if (at == begin) first_bytes = code.bytes;
      at += code.bytes;
      units += utf16_units(code.value);
      if (units > kMaxTokenUnits) break;
      state = kNextState[state][class_of(code.value)];
      if (state == 0) break;
      if (kAcceptedRule[state] != 0) {
        rule = kAcceptedRule[state];
        end = at;
      }
    }
    if (rule != 0) {
      token = {begin, end, static_cast<TokenType>(rule)};
      return true;
    }
    begin += first_bytes;
  }
  return false;
}

// What an ASCII byte does to the words of ASCII letters and digits around it.
enum AsciiByte : uint8_t {
  kOtherByte,       // the automaton decides
  kWordByte,        // a letter or digit: continues a word
  kSeparator,       // begins no token and ends a word
  kJoinsNeighbours  // begins no token; may join the words before and after it
};

struct AsciiBytes {
  AsciiByte of[256] = {};
  constexpr AsciiBytes() {
    for (int byte = 0; byte < 0x80; byte++) {
      const bool is_letter = (byte | 32) >= 'a' && (byte | 32) <= 'z';
      of[byte] = is_letter || (byte >= '0' && byte <= '9') ? kWordByte : kSeparator;
    }
    for (const char byte : {'\'', '.', ':', ',', ';', '"'}) of[static_cast<uint8_t>(byte)] = kJoinsNeighbours;
    for (const char byte : {'_', '#', '*'}) of[static_cast<uint8_t>(byte)] = kOtherByte;
  }
};
inline constexpr AsciiBytes kAsciiBytes;

inline AsciiByte ascii_byte(char byte) { return kAsciiBytes.of[static_cast<uint8_t>(byte)]; }

// A word of ASCII letters and digits in lower case.
struct AsciiWord {
  static constexpr size_t kMaxBytes = 63;
  char bytes[kMaxBytes + 8];
  size_t size;
};

// Reads the letters and digits from `at` on. False if a token that begins there may be longer; then the automaton decides.
inline bool read_ascii_word(std::string_view text, size_t at, AsciiWord& word) {
  constexpr uint64_t kEach = 0x0101010101010101ull;
  const size_t begin = at;
  word.size = 0;
  while (text.size() - at >= 8 && word.size + 8 <= AsciiWord::kMaxBytes) {
    // Eight bytes at a time. Bit 7 of a byte is the result of its test; no sum overflows into the next byte.
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, sizeof eight);
    const uint64_t low = eight & 0x7F * kEach;
    const uint64_t folded = low | 0x20 * kEach;
    const uint64_t ascii = ~eight & 0x80 * kEach;
    const uint64_t letters = (folded + (0x80 - 'a') * kEach) & ~(folded + (0x80 - 'z' - 1) * kEach) & ascii;
    const uint64_t digits = (low + (0x80 - '0') * kEach) & ~(low + (0x80 - '9' - 1) * kEach) & ascii;
    const uint64_t lower = eight | letters >> 2;
    std::memcpy(word.bytes + word.size, &lower, sizeof lower);
    const uint64_t others = ~(letters | digits) & 0x80 * kEach;
    const size_t taken = others == 0 ? 8 : static_cast<size_t>(__builtin_ctzll(others)) / 8;
    word.size += taken;
    at += taken;
    if (taken < 8) break;
  }
  while (at < text.size() && word.size < AsciiWord::kMaxBytes && ascii_byte(text[at]) == kWordByte) {
    const char byte = text[at++];
    word.bytes[word.size++] = byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
  }
  if (at == begin) return false;
  if (at == text.size() || ascii_byte(text[at]) == kSeparator) return true;
  // A point or comma at the end of a sentence or clause joins nothing.
  return ascii_byte(text[at]) == kJoinsNeighbours && (at + 1 == text.size() || ascii_byte(text[at + 1]) == kSeparator);
}

// Calls ascii(word) for most tokens of ASCII letters and digits, and other(token) for all other tokens, in the order of the text.
template <class Ascii, class Other>
void for_each_token(std::string_view text, Ascii&& ascii, Other&& other) {
  AsciiWord word;
  Token token;
  for (size_t at = 0; at < text.size();) {
    const AsciiByte byte = ascii_byte(text[at]);
    if (byte == kSeparator || byte == kJoinsNeighbours) {
      at++;
    } else if (byte == kWordByte && read_ascii_word(text, at, word)) {
      at += word.size;
      ascii(word);
    } else {
      if (!next_token(text, at, token)) return;
      other(token);
      at = token.end;
    }
  }
}

}  // namespace trawl::lexical
