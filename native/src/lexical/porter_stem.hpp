// Porter's stemmer as in Lucene's PorterStemFilter: M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980, with
// «bli» → «ble» instead of «abli» → «able», and with «logi» → «log».
#pragma once
#include <cstddef>
#include <string>

namespace trawl::lexical {

// Replaces a lower-case UTF-8 word with its stem. Words of up to two UTF-16 units do not change. Vowels are a, e, i, o, u, and y
// after a consonant; all other characters are consonants.
void porter_stem(std::string& word);

// The same for a word of ASCII, up to kMaxAsciiWord bytes, in place. Returns the size of the stem, at most `size`.
inline constexpr size_t kMaxAsciiWord = 63;
size_t porter_stem_ascii(char* word, size_t size);

// The same for any word, letter by letter.
void porter_stem_any(std::string& word);

}  // namespace trawl::lexical
