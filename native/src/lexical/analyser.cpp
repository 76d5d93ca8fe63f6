#include "trawl/analyser.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "lexical/porter_stem.hpp"
#include "lexical/tokenizer.hpp"

namespace trawl::lexical {
namespace {

uint32_t lower_case(uint32_t code) {
  const LowerCaseRun* end = kLowerCaseRuns + kLowerCaseRunCount;
  const LowerCaseRun* run = std::lower_bound(kLowerCaseRuns, end, code, [](const LowerCaseRun& r, uint32_t c) { return r.last < c; });
  if (run == end || code < run->first || (code - run->first) % run->step != 0) return code;
  return code + run->difference;
}

// Lower-cases every code point as Java's Character.toLowerCase(int) does.
void append_lower_case(std::string_view term, std::string& lower) {
  for (size_t at = 0; at < term.size();) {
    const auto byte = static_cast<uint8_t>(term[at]);
    if (byte < 0x80) {
      lower.push_back(byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : static_cast<char>(byte));
      at++;
      continue;
    }
    const CodePoint code = code_point_at(term, at);
    append_utf8(lower_case(code.value), lower);
    at += code.bytes;
  }
}

constexpr std::string_view kEnglishStopWords[] = {"a",   "an",    "and",  "are",   "as",    "at",   "be",   "but", "by",  "for",  "if",
                                                  "in",  "into",  "is",   "it",    "no",    "not",  "of",   "on",  "or",  "such", "that",
                                                  "the", "their", "then", "there", "these", "they", "this", "to",  "was", "will", "with"};
// Lucene's CJKAnalyzer has different stop words: without "an", with "s", "t" and "www".
constexpr std::string_view kMoreCjkStopWords[] = {"s", "t", "www"};

constexpr size_t kLongestStopWord = 5;

// Up to eight bytes as a number.
constexpr uint64_t number_of(std::string_view word) {
  uint64_t number = 0;
  for (size_t i = 0; i < word.size(); i++) number |= static_cast<uint64_t>(static_cast<uint8_t>(word[i])) << 8 * i;
  return number;
}

// A perfect hash table of the stop words.
struct StopWords {
  uint64_t at[128] = {};
  bool all_apart = true;
  constexpr StopWords() {
    for (const std::string_view word : kEnglishStopWords) {
      uint64_t& place = at[place_of(number_of(word))];
      all_apart = all_apart && place == 0;
      place = number_of(word);
    }
  }
  // A random factor without a collision.
  static constexpr uint64_t place_of(uint64_t number) { return number * 0x81F9C1F66C0F3459ull >> 57; }
  constexpr bool has(uint64_t number) const { return number != 0 && at[place_of(number)] == number; }
};
constexpr StopWords kStopWords;
static_assert(AsciiWord::kMaxBytes <= kMaxAsciiWord, "the stemmer takes the words of the tokenizer");
static_assert(kStopWords.all_apart, "two stop words have one place");

bool is_english_stop_word(std::string_view term) { return term.size() <= kLongestStopWord && kStopWords.has(number_of(term)); }

bool is_english_stop_word(const AsciiWord& word) {
  if (word.size > kLongestStopWord) return false;
  uint64_t number;
  std::memcpy(&number, word.bytes, sizeof number);
  return kStopWords.has(number & ((uint64_t{1} << 8 * word.size) - 1));
}

bool is_cjk_stop_word(std::string_view term) {
  if (term.empty()) return true;
  if (std::find(std::begin(kMoreCjkStopWords), std::end(kMoreCjkStopWords), term) != std::end(kMoreCjkStopWords)) {
    return true;
  }
  return term != "an" && is_english_stop_word(term);
}

// Lucene's EnglishPossessiveFilter: removes a final apostrophe (', U+2019, U+FF07) with the s or S that follows.
std::string_view without_possessive(std::string_view term) {
  if (term.size() < 2 || (term.back() != 's' && term.back() != 'S')) return term;
  for (const std::string_view apostrophe : {"'", "\u2019", "\uff07"}) {
    const size_t size = apostrophe.size() + 1;
    if (term.size() >= size && term.substr(term.size() - size, apostrophe.size()) == apostrophe) {
      return term.substr(0, term.size() - size);
    }
  }
  return term;
}

void analyse_standard(std::string_view text, Terms& terms) {
  std::string lower;
  for_each_token(
      text, [&](const AsciiWord& word) { terms.add({word.bytes, word.size}); },
      [&](const Token& token) {
        lower.clear();
        append_lower_case(text.substr(token.begin, token.end - token.begin), lower);
        terms.add(lower);
      });
}

void analyse_english(std::string_view text, Terms& terms) {
  std::string word;
  for_each_token(
      text,
      [&](AsciiWord& ascii) {
        if (is_english_stop_word(ascii)) return;
        terms.add({ascii.bytes, porter_stem_ascii(ascii.bytes, ascii.size)});
      },
      [&](const Token& token) {
        word.clear();
        append_lower_case(without_possessive(text.substr(token.begin, token.end - token.begin)), word);
        if (is_english_stop_word(word)) return;
        porter_stem(word);
        terms.add(word);
      });
}

// Java's Character.isWhitespace: Unicode separators except the three no-break spaces, and some ASCII control characters.
bool is_java_whitespace(uint32_t code) {
  if ((code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20)) return true;
  return code == 0x1680 || (code >= 0x2000 && code <= 0x200A && code != 0x2007) || code == 0x2028 || code == 0x2029 || code == 0x205F ||
         code == 0x3000;
}

void analyse_whitespace(std::string_view text, Terms& terms) {
  size_t begin = 0;
  uint32_t units = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint code = code_point_at(text, at);
    if (is_java_whitespace(code.value)) {
      if (at > begin) terms.add(text.substr(begin, at - begin));
      at += code.bytes;
      begin = at;
      units = 0;
      continue;
    }
    at += code.bytes;
    units += utf16_units(code.value);
    if (units >= kMaxTokenUnits) {
      terms.add(text.substr(begin, at - begin));
      begin = at;
      units = 0;
    }
  }
  if (begin < text.size()) terms.add(text.substr(begin));
}

// Maps half-width U+FF65 to U+FF9F to katakana, as Lucene's CJKWidthFilter does.
constexpr uint16_t kFullWidthKatakana[] = {0x30FB, 0x30F2, 0x30A1, 0x30A3, 0x30A5, 0x30A7, 0x30A9, 0x30E3, 0x30E5, 0x30E7, 0x30C3, 0x30FC,
                                           0x30A2, 0x30A4, 0x30A6, 0x30A8, 0x30AA, 0x30AB, 0x30AD, 0x30AF, 0x30B1, 0x30B3, 0x30B5, 0x30B7,
                                           0x30B9, 0x30BB, 0x30BD, 0x30BF, 0x30C1, 0x30C4, 0x30C6, 0x30C8, 0x30CA, 0x30CB, 0x30CC, 0x30CD,
                                           0x30CE, 0x30CF, 0x30D2, 0x30D5, 0x30D8, 0x30DB, 0x30DE, 0x30DF, 0x30E0, 0x30E1, 0x30E2, 0x30E4,
                                           0x30E6, 0x30E8, 0x30E9, 0x30EA, 0x30EB, 0x30EC, 0x30ED, 0x30EF, 0x30F3, 0x3099, 0x309A};

// The katakana that combines `base` with a sound mark (U+FF9E voiced, U+FF9F semi-voiced); 0 if there is none.
uint32_t with_sound_mark(uint32_t base, bool voiced) {
  const bool h_row = base >= 0x30CF && base <= 0x30DB && (base - 0x30CF) % 3 == 0;
  if (!voiced) return h_row ? base + 2 : 0;
  if (h_row) return base + 1;
  const bool k_to_t = (base >= 0x30AB && base <= 0x30C1 && base % 2 == 1) || base == 0x30C4 || base == 0x30C6 || base == 0x30C8;
  if (k_to_t || base == 0x30FD) return base + 1;
  if (base == 0x30A6) return 0x30F4;
  return base >= 0x30EF && base <= 0x30F2 ? base + 8 : 0;
}

void append_folded_width(std::string_view term, std::string& folded) {
  uint32_t last = 0;
  size_t last_begin = 0;
  for (size_t at = 0; at < term.size();) {
    const CodePoint code = code_point_at(term, at);
    at += code.bytes;
    uint32_t value = code.value;
    if (value >= 0xFF01 && value <= 0xFF5E) {
      value -= 0xFEE0;
    } else if (value >= 0xFF65 && value <= 0xFF9F) {
      const bool mark = value >= 0xFF9E;
      const uint32_t composed = mark ? with_sound_mark(last, value == 0xFF9E) : 0;
      value = kFullWidthKatakana[value - 0xFF65];
      if (composed != 0) {
        folded.resize(last_begin);
        value = composed;
      }
    }
    last = value;
    last_begin = folded.size();
    append_utf8(value, folded);
  }
}

void add_cjk_term(std::string_view term, Terms& terms) {
  if (!is_cjk_stop_word(term)) terms.add(term);
}

// Adds the bigrams of a run of characters, or its only character, and clears the run.
void flush_bigrams(std::string& run, Terms& terms) {
  if (run.empty()) return;
  size_t first = 0;
  size_t second = code_point_at(run, 0).bytes;
  if (second == run.size()) add_cjk_term(run, terms);
  while (second < run.size()) {
    const size_t end = second + code_point_at(run, second).bytes;
    add_cjk_term(std::string_view(run).substr(first, end - first), terms);
    first = second;
    second = end;
  }
  run.clear();
}

void analyse_cjk(std::string_view text, Terms& terms) {
  std::string folded;
  std::string lower;
  std::string run;
  Token token;
  for (size_t at = 0; next_token(text, at, token); at = token.end) {
    folded.clear();
    lower.clear();
    append_folded_width(text.substr(token.begin, token.end - token.begin), folded);
    append_lower_case(folded, lower);
    const bool cjk = token.type == kIdeographic || token.type == kHiragana || token.type == kKatakana || token.type == kHangul;
    if (!cjk || token.begin != at) flush_bigrams(run, terms);
    if (cjk) {
      run += lower;
    } else {
      add_cjk_term(lower, terms);
    }
  }
  flush_bigrams(run, terms);
}

}  // namespace

void analyse(Analyser analyser, std::string_view text, Terms& terms) {
  terms.clear();
  switch (analyser) {
    case Analyser::kEnglish: return analyse_english(text, terms);
    case Analyser::kStandard: return analyse_standard(text, terms);
    case Analyser::kWhitespace: return analyse_whitespace(text, terms);
    case Analyser::kCjk: return analyse_cjk(text, terms);
  }
}

}  // namespace trawl::lexical
