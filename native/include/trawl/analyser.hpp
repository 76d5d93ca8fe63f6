// Splits text into terms as Lucene's analysers do. src/engine/lexical/analysis (TypeScript) gives the same terms.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trawl::lexical {

enum class Analyser : uint8_t {
  kEnglish = 1,     // Lucene's EnglishAnalyzer, Pyserini's default: possessive, lower case, stop words, Porter
  kStandard = 2,    // Lucene's StandardAnalyzer without stop words, Elasticsearch's default
  kWhitespace = 3,  // Lucene's WhitespaceAnalyzer
  kCjk = 4,         // Lucene's CJKAnalyzer: width, lower case, bigrams, its stop words
};

// The terms of one text in order, in UTF-8, repeated ones included. The object is reused for the next text.
class Terms {
 public:
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  void clear() {
    bytes_.clear();
    ends_.clear();
  }
  void add(std::string_view term) {
    bytes_.append(term);
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_;
};

// Replaces the content of `terms` with the terms of a UTF-8 text of less than 2^31 bytes. Invalid bytes separate terms, as
// U+FFFD does.
void analyse(Analyser analyser, std::string_view text, Terms& terms);

}  // namespace trawl::lexical
