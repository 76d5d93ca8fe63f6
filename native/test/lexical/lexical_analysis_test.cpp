// The analysers: the same terms as in Lucene.
#include <iterator>
#include <random>

#include "lexical/porter_stem.hpp"
#include "lexical/tokenizer.hpp"
#include "lexical_texts.hpp"

using namespace lexical_test;

namespace {

std::string joined(Analyser analyser, std::string_view text) {
  std::string result;
  for (const std::string& term : terms_of(analyser, text)) result += (result.empty() ? "" : "|") + term;
  return result;
}

}  // namespace

TEST("lexical: texts have the same terms as in Lucene") {
  CHECK_EQUAL(joined(Analyser::kStandard, "don't O'Neil\u2019s U.S.A. 1,000.50 foo@bar.com"),
              "don't|o'neil\u2019s|u.s.a|1,000.50|foo|bar.com");
  CHECK_EQUAL(joined(Analyser::kStandard, "\u6211\u7231\u5317 \u6771\u4eac\u30bf\u30ef\u30fc\u306f"),
              "\u6211|\u7231|\u5317|\u6771|\u4eac|\u30bf\u30ef\u30fc|\u306f");
  CHECK_EQUAL(joined(Analyser::kStandard, "\u03a3\u0391\u03a3 \u0130"), "\u03c3\u03b1\u03c3|i");
  CHECK_EQUAL(joined(Analyser::kEnglish, "The Running of O'Neil\u2019S dogs"), "run|o'neil|dog");
  CHECK_EQUAL(joined(Analyser::kEnglish, "xies eed eeds sses byyed yyyed skyyed"), "xi|eed|eed|ss|by|yy|sky");
  CHECK_EQUAL(joined(Analyser::kCjk, "\u5317\u4eac\u5929 x \u5317"), "\u5317\u4eac|\u4eac\u5929|x|\u5317");
  CHECK_EQUAL(joined(Analyser::kWhitespace, " a\tB\u3000c "), "a|B|c");
  CHECK_EQUAL(joined(Analyser::kEnglish, "the of and"), "");
  CHECK_EQUAL(joined(Analyser::kStandard, std::string("\xff\xc0\xe2\x82") + "a"), "a");
  CHECK_EQUAL(terms_of(Analyser::kStandard, std::string(300, 'x')).size(), size_t{2});
  CHECK_EQUAL(terms_of(Analyser::kStandard, std::string(300, 'x'))[0].size(), size_t{255});
}

TEST("lexical: ASCII words are the automaton's tokens in lower case") {
  std::mt19937 random(31);
  const std::string_view pieces[] = {"a",          "Z",
                                     "the",        "Word",
                                     "LONGERword", "7",
                                     "1990",       " ",
                                     "  ",         ". ",
                                     ", ",         ".",
                                     ",",          ":",
                                     ";",          "'",
                                     "'s ",        "\"",
                                     ".\"",        "_",
                                     "#",          "*",
                                     "@",          "[",
                                     "`",          "{",
                                     "/",          "\x7f",
                                     "\n",         std::string_view("\0", 1),
                                     "\u00e9",     "\u0301",
                                     "\u4eac",     "1\ufe0f\u20e3",
                                     "\xff"};
  for (int round = 0; round < 20000; round++) {
    std::string text;
    const int count = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < count; i++) text += pieces[random() % std::size(pieces)];
    if (round % 50 == 0) text += std::string(50 + random() % 250, 'X') + "y";
    std::vector<std::string> expected;
    std::vector<std::string> found;
    Token token;
    const auto add = [&text](std::vector<std::string>& tokens, const Token& added) {
      tokens.push_back(text.substr(added.begin, added.end - added.begin));
      for (char& byte : tokens.back()) byte = byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
    };
    for (size_t at = 0; next_token(text, at, token); at = token.end) add(expected, token);
    for_each_token(
        text, [&](const AsciiWord& word) { found.emplace_back(word.bytes, word.size); }, [&](const Token& other) { add(found, other); });
    CHECK(found == expected);
  }
}

TEST("lexical: ASCII words have the same stems as words of other characters") {
  std::mt19937 random(37);
  const std::string_view endings[] = {
      "s",      "sses",  "ies",   "eed",   "ed",      "ing",   "y",    "ational", "tional",  "enci",    "anci",    "izer",  "bli",
      "alli",   "entli", "eli",   "ousli", "ization", "ation", "ator", "alism",   "iveness", "fulness", "ousness", "aliti", "iviti",
      "biliti", "logi",  "icate", "ative", "alize",   "iciti", "ical", "ful",     "ness",    "al",      "ance",    "ence",  "er",
      "ic",     "able",  "ible",  "ant",   "ement",   "ment",  "ent",  "ion",     "sion",    "tion",    "ou",      "ism",   "ate",
      "iti",    "ous",   "ive",   "ize",   "e",       "ll",    "at",   "bl",      "iz",      "ss",      "zz"};
  for (int round = 0; round < 200000; round++) {
    std::string word;
    const int letters = static_cast<int>(random() % (round % 100 == 0 ? 60 : 6));
    for (int i = 0; i < letters; i++) word += "aeiouybcdlstwxz0'"[random() % 17];
    const int count = static_cast<int>(random() % 4);
    for (int i = 0; i < count; i++) word += endings[random() % std::size(endings)];
    std::string expected = word;
    porter_stem_any(expected);
    porter_stem(word);
    CHECK_EQUAL(word, expected);
  }
}
