#include "lexical/porter_stem.hpp"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "lexical/utf8.hpp"

namespace trawl::lexical {
namespace {

struct Suffix {
  std::string_view from;
  std::string_view to;
  bool after_s_or_t = false;
};

// Stems any word. The algorithm compares and removes UTF-16 units, as in Java.
class Stemmer {
 public:
  using Unit = char16_t;
  explicit Stemmer(std::u16string& word) : word_(word) {}

  void run() {
    remove_plural();
    remove_past_and_progressive();
    if (ends_with("y") && has_vowel(length() - 1)) word_[length() - 1] = 'i';
    replace_suffix(kStep2, 0);
    replace_suffix(kStep3, 0);
    replace_suffix(kStep4, 1);
    remove_final_e_and_l();
  }

 private:
  // Endings are tried in this order. The first match ends the search, even if it is not replaced.
  static constexpr Suffix kStep2[] = {
      {"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},   {"izer", "ize"},  {"bli", "ble"},    {"alli", "al"},
      {"entli", "ent"},   {"eli", "e"},       {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"},   {"alism", "al"},
      {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},    {"iviti", "ive"}, {"biliti", "ble"}, {"logi", "log"}};
  static constexpr Suffix kStep3[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                                      {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
  static constexpr Suffix kStep4[] = {{"al", ""},  {"ance", ""},  {"ence", ""}, {"er", ""},  {"ic", ""},        {"able", ""}, {"ible", ""},
                                      {"ant", ""}, {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ion", "", true}, {"ou", ""},   {"ism", ""},
                                      {"ate", ""}, {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""}};

  size_t length() const { return word_.size(); }

  bool ends_with(std::string_view suffix) const { return fits(suffix, length()); }

  // Whether the first `end` units end with the suffix. Compares backwards, because most words differ in the last unit.
  bool fits(std::string_view suffix, size_t end) const {
    if (suffix.size() > end) return false;
    const Unit* last = word_.data() + end;
    for (size_t i = suffix.size(); i > 0; i--) {
      if (*--last != static_cast<Unit>(suffix[i - 1])) return false;
    }
    return true;
  }

  bool is_consonant(size_t i) const {
    // In a run of y, consonants and vowels alternate, so the unit before the run decides.
    size_t run = 0;
    while (word_[i] == 'y' && i > 0) {
      i--;
      run++;
    }
    const Unit unit = word_[i];
    const bool consonant = !(unit == 'a' || unit == 'e' || unit == 'i' || unit == 'o' || unit == 'u');
    return run % 2 == 0 ? consonant : !consonant;
  }

  // Porter's m of the first `end` units: the number of times that a consonant follows a vowel. Counts only to 2.
  int measure(size_t end) const {
    int count = 0;
    bool after_vowel = false;
    bool consonant = false;
    for (size_t i = 0; i < end && count < 2; i++) {
      const Unit unit = word_[i];
      if (unit == 'y') {
        consonant = i == 0 || !consonant;
      } else {
        consonant = !(unit == 'a' || unit == 'e' || unit == 'i' || unit == 'o' || unit == 'u');
      }
      if (consonant && after_vowel) count++;
      after_vowel = !consonant;
    }
    return count;
  }

  bool has_vowel(size_t end) const {
    for (size_t i = 0; i < end; i++) {
      if (!is_consonant(i)) return true;
    }
    return false;
  }

  bool ends_in_double_consonant() const {
    const size_t end = length();
    return end >= 2 && word_[end - 1] == word_[end - 2] && is_consonant(end - 1);
  }

  // Whether the first `end` units end with consonant, vowel, consonant, and the last is not w, x or y.
  bool ends_in_short_syllable(size_t end) const {
    if (end < 3 || !is_consonant(end - 1) || is_consonant(end - 2) || !is_consonant(end - 3)) return false;
    const Unit last = word_[end - 1];
    return last != 'w' && last != 'x' && last != 'y';
  }

  void append(std::string_view text) {
    for (const char unit : text) word_.push_back(static_cast<Unit>(unit));
  }

  void remove_plural() {
    if (ends_with("sses") || ends_with("ies")) {
      word_.resize(length() - 2);
    } else if (ends_with("s") && !ends_with("ss")) {
      word_.pop_back();
    }
  }

  void remove_past_and_progressive() {
    if (ends_with("eed")) {
      if (measure(length() - 3) > 0) word_.pop_back();
      return;
    }
    const size_t suffix = ends_with("ed") ? 2 : ends_with("ing") ? 3 : 0;
    if (suffix == 0 || !has_vowel(length() - suffix)) return;
    word_.resize(length() - suffix);
    if (ends_with("at") || ends_with("bl") || ends_with("iz")) {
      word_.push_back('e');
    } else if (ends_in_double_consonant()) {
      const Unit last = word_[length() - 1];
      if (last != 'l' && last != 's' && last != 'z') word_.pop_back();
    } else if (measure(length()) == 1 && ends_in_short_syllable(length())) {
      word_.push_back('e');
    }
  }

  template <size_t N>
  void replace_suffix(const Suffix (&suffixes)[N], int above) {
    for (const Suffix& suffix : suffixes) {
      if (!ends_with(suffix.from)) continue;
      const size_t before = length() - suffix.from.size();
      if (measure(before) <= above) return;
      if (suffix.after_s_or_t && !fits("s", before) && !fits("t", before)) return;
      word_.resize(before);
      append(suffix.to);
      return;
    }
  }

  void remove_final_e_and_l() {
    if (ends_with("e")) {
      const size_t before = length() - 1;
      const int m = measure(before);
      if (m > 1 || (m == 1 && !ends_in_short_syllable(before))) word_.pop_back();
    }
    if (ends_with("ll") && measure(length() - 1) > 1) word_.pop_back();
  }

  std::u16string& word_;
};

bool is_ascii(const std::string& word) {
  for (const char byte : word) {
    if (static_cast<uint8_t>(byte) >= 0x80) return false;
  }
  return true;
}

std::u16string to_utf16(const std::string& word) {
  std::u16string units;
  for (size_t at = 0; at < word.size();) {
    const CodePoint code = code_point_at(word, at);
    at += code.bytes;
    if (code.value > 0xFFFF) {
      units.push_back(static_cast<char16_t>(0xD800 + ((code.value - 0x10000) >> 10)));
      units.push_back(static_cast<char16_t>(0xDC00 + ((code.value - 0x10000) & 0x3FF)));
    } else {
      units.push_back(static_cast<char16_t>(code.value));
    }
  }
  return units;
}

std::string to_utf8(const std::u16string& units) {
  std::string word;
  for (size_t i = 0; i < units.size(); i++) {
    uint32_t code = units[i];
    if (code >= 0xD800 && code < 0xDC00 && i + 1 < units.size()) {
      code = 0x10000 + ((code - 0xD800) << 10) + (units[++i] - 0xDC00);
    }
    append_utf8(code, word);
  }
  return word;
}

// The vowels of a word as bits: a, e, i, o, u, and y after a consonant. Endings are cut off without looking at it again.
class AsciiStemmer {
 public:
  AsciiStemmer(char* word, size_t size) : word_(word), size_(size) {
    uint64_t after_consonant = 0;
    for (size_t i = 0; i < size; i++) {
      const uint64_t is_vowel = is_vowel_letter(word[i]) | (after_consonant & static_cast<uint64_t>(word[i] == 'y'));
      vowels_ |= is_vowel << i;
      after_consonant = is_vowel ^ 1;
    }
  }

  size_t run() {
    remove_plural();
    remove_past_and_progressive();
    if (word_[size_ - 1] == 'y' && has_vowel(size_ - 1)) {
      word_[size_ - 1] = 'i';
      vowels_ |= uint64_t{1} << (size_ - 1);
    }
    if (size_ > 2) {
      replace_double_suffix();
      replace_full_or_ness();
      remove_last_suffix();
    }
    remove_final_e_and_l();
    return size_;
  }

 private:
  static uint64_t is_vowel_letter(char letter) {
    constexpr uint32_t vowels = 1u << ('a' - 'a') | 1u << ('e' - 'a') | 1u << ('i' - 'a') | 1u << ('o' - 'a') | 1u << ('u' - 'a');
    const auto number = static_cast<uint8_t>(letter - 'a');
    return number < 26 ? vowels >> number & 1 : 0;
  }

  template <size_t N>
  bool ends_with(const char (&suffix)[N]) const {
    return size_ >= N - 1 && std::memcmp(word_ + size_ - (N - 1), suffix, N - 1) == 0;
  }

  // The first `end` letters, up to 63.
  static uint64_t first(size_t end) { return (uint64_t{1} << end) - 1; }
  // A bit for each consonant after a vowel: Porter's m of the first `end` letters is their number.
  uint64_t syllables(size_t end) const { return ~vowels_ & vowels_ << 1 & first(end); }
  bool measures_above_0(size_t end) const { return syllables(end) != 0; }
  bool measures_above_1(size_t end) const { return (syllables(end) & (syllables(end) - 1)) != 0 && syllables(end) != 0; }
  bool has_vowel(size_t end) const { return (vowels_ & first(end)) != 0; }
  bool is_consonant(size_t i) const { return (vowels_ >> i & 1) == 0; }

  bool ends_in_short_syllable(size_t end) const {
    if (end < 3 || !is_consonant(end - 1) || is_consonant(end - 2) || !is_consonant(end - 3)) return false;
    const char last = word_[end - 1];
    return last != 'w' && last != 'x' && last != 'y';
  }

  void append_e() {
    word_[size_] = 'e';
    vowels_ |= uint64_t{1} << size_;
    size_++;
  }

  void remove_plural() {
    if (word_[size_ - 1] != 's') return;
    if (ends_with("sses") || ends_with("ies")) {
      size_ -= 2;
    } else if (word_[size_ - 2] != 's') {
      size_--;
    }
  }

  void remove_past_and_progressive() {
    if (ends_with("eed")) {
      if (measures_above_0(size_ - 3)) size_--;
      return;
    }
    const size_t suffix = ends_with("ed") ? 2 : ends_with("ing") ? 3 : 0;
    if (suffix == 0 || !has_vowel(size_ - suffix)) return;
    size_ -= suffix;
    const char last = word_[size_ - 1];
    if (ends_with("at") || ends_with("bl") || ends_with("iz")) {
      append_e();
    } else if (size_ > 1 && last == word_[size_ - 2] && is_consonant(size_ - 1)) {
      if (last != 'l' && last != 's' && last != 'z') size_--;
    } else if (measures_above_0(size_) && !measures_above_1(size_) && ends_in_short_syllable(size_)) {
      append_e();
    }
  }

  // False if the word does not end with `from`. Else `to` replaces it if what comes before is long enough.
  template <size_t From, size_t To>
  bool replace(const char (&from)[From], const char (&to)[To]) {
    if (!ends_with(from)) return false;
    const size_t before = size_ - (From - 1);
    if (!measures_above_0(before)) return true;
    size_ = before + To - 1;
    vowels_ &= first(before);
    for (size_t i = 0; i < To - 1; i++) {
      word_[before + i] = to[i];
      vowels_ |= is_vowel_letter(to[i]) << (before + i);
    }
    return true;
  }

  template <size_t N>
  bool remove(const char (&suffix)[N]) {
    if (!ends_with(suffix)) return false;
    if (measures_above_1(size_ - (N - 1))) size_ -= N - 1;
    return true;
  }

  // Endings whose last letter but one differs exclude each other, so the order matters within a case only.
  void replace_double_suffix() {
    switch (word_[size_ - 2]) {
      case 'a': replace("ational", "ate") || replace("tional", "tion"); break;
      case 'c': replace("enci", "ence") || replace("anci", "ance"); break;
      case 'e': replace("izer", "ize"); break;
      case 'g': replace("logi", "log"); break;
      case 'l':
        replace("bli", "ble") || replace("alli", "al") || replace("entli", "ent") || replace("eli", "e") || replace("ousli", "ous");
        break;
      case 'o': replace("ization", "ize") || replace("ation", "ate") || replace("ator", "ate"); break;
      case 's': replace("alism", "al") || replace("iveness", "ive") || replace("fulness", "ful") || replace("ousness", "ous"); break;
      case 't': replace("aliti", "al") || replace("iviti", "ive") || replace("biliti", "ble"); break;
      default: break;
    }
  }

  void replace_full_or_ness() {
    switch (word_[size_ - 1]) {
      case 'e': replace("icate", "ic") || replace("ative", "") || replace("alize", "al"); break;
      case 'i': replace("iciti", "ic"); break;
      case 'l': replace("ical", "ic") || replace("ful", ""); break;
      case 's': replace("ness", ""); break;
      default: break;
    }
  }

  void remove_last_suffix() {
    if (size_ < 2) return;
    switch (word_[size_ - 2]) {
      case 'a': remove("al"); break;
      case 'c': remove("ance") || remove("ence"); break;
      case 'e': remove("er"); break;
      case 'i': remove("ic"); break;
      case 'l': remove("able") || remove("ible"); break;
      case 'n': remove("ant") || remove("ement") || remove("ment") || remove("ent"); break;
      case 'o':
        if (size_ > 3 && (word_[size_ - 4] == 's' || word_[size_ - 4] == 't') && remove("ion")) break;
        remove("ou");
        break;
      case 's': remove("ism"); break;
      case 't': remove("ate") || remove("iti"); break;
      case 'u': remove("ous"); break;
      case 'v': remove("ive"); break;
      case 'z': remove("ize"); break;
      default: break;
    }
  }

  void remove_final_e_and_l() {
    if (word_[size_ - 1] == 'e') {
      const size_t before = size_ - 1;
      if (measures_above_1(before) || (measures_above_0(before) && !ends_in_short_syllable(before))) size_--;
    }
    if (size_ > 1 && word_[size_ - 1] == 'l' && word_[size_ - 2] == 'l' && measures_above_1(size_ - 1)) size_--;
  }

  char* const word_;
  size_t size_;
  uint64_t vowels_ = 0;  // bit i: letter i
};

}  // namespace

size_t porter_stem_ascii(char* word, size_t size) { return size > 2 ? AsciiStemmer(word, size).run() : size; }

void porter_stem_any(std::string& word) {
  std::u16string units = to_utf16(word);
  if (units.size() <= 2) return;
  Stemmer(units).run();
  word = to_utf8(units);
}

void porter_stem(std::string& word) {
  if (word.size() <= kMaxAsciiWord && is_ascii(word)) {
    word.resize(porter_stem_ascii(word.data(), word.size()));
  } else {
    porter_stem_any(word);
  }
}

}  // namespace trawl::lexical
