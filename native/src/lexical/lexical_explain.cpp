// The parts of the scores of given rows.
#include <algorithm>
#include <numeric>

#include "base/float_environment.hpp"
#include "lexical/lexical_shards.hpp"
#include "lexical/posting_cursor.hpp"
#include "lexical/search_tasks.hpp"
#include "trawl/error.hpp"

namespace trawl::lexical {

std::vector<std::vector<ExplainedTerm>> explain(const LexicalIndex& index, const BagOfWords& query, const std::vector<int64_t>& rows,
                                                const LexicalOptions& options, int64_t most) {
  check_options(options);
  for (const int64_t row : rows) {
    if (row >= 0 && row < index.rows()) continue;
    throw Error(ErrorCode::kBadArgument, "row is " + std::to_string(row) + ", but the index has " + std::to_string(index.rows()) + " rows");
  }
  // A cursor only moves forward.
  std::vector<size_t> rising(rows.size());
  std::iota(rising.begin(), rising.end(), size_t{0});
  std::sort(rising.begin(), rising.end(), [&](size_t a, size_t b) { return rows[a] < rows[b]; });

  const FloatEnvironment environment;
  const Bm25 bm25 = {options.k1, options.b, options.factor_k1_plus_1};
  const InverseNorms inverse = inverse_norms(bm25, index.counts());
  std::vector<std::vector<ExplainedTerm>> explained(rows.size());
  std::vector<TermPostings> postings(index.shards().size());
  DecodedBlocks blocks(1);
  for (size_t term = 0; term < query.size(); term++) {
    check_cancelled(options.cancel);
    const uint64_t frequency = index.document_frequency(query[term].term, postings.data());
    if (frequency == 0) continue;
    const float idf = inverse_document_frequency(frequency, index.counts().documents);
    const float weight = term_weight(bm25, query[term].boost, idf);
    size_t next = 0;
    for (size_t number = 0; number < index.shards().size(); number++) {
      const LexicalIndex::Shard& shard = index.shards()[number];
      const int64_t end = shard.first_row + shard.file->rows();
      const size_t first = next;
      while (next < rising.size() && rows[rising[next]] < end) next++;
      if (next == first || postings[number].count == 0) continue;
      PostingCursor cursor(*shard.file, postings[number], weight, inverse, blocks);
      for (size_t i = first; i < next; i++) {
        const auto row = static_cast<uint32_t>(rows[rising[i]] - shard.first_row);
        if (!cursor.has(row)) continue;
        explained[rising[i]].push_back({static_cast<uint32_t>(term), cursor.score_of(row)});
        if (--most < 0) return explained;
      }
    }
  }
  return explained;
}

}  // namespace trawl::lexical
