// Evaluates a planned query over the rows of one shard of each field, a window of rows at a time.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/row_bits.hpp"
#include "lexical/lexical_shards.hpp"
#include "lexical/posting_cursor.hpp"
#include "lexical/query_plan.hpp"

namespace trawl::lexical {

// A level of nesting needs about 100 KB for a window of 4,096 rows, so the levels of most queries fit into a second-level cache.
inline constexpr uint32_t kQueryWindowRows = 1 << 12;

// A floor that every score is above.
inline constexpr float kNoFloor = -std::numeric_limits<float>::infinity();

// A set of rows of a window: bit (i & 63) of word (i >> 6) for row i of the window.
using RowSet = std::array<uint64_t, kQueryWindowRows / 64>;

struct MatchedRows {
  RowSet rows;
  std::array<float, kQueryWindowRows> scores;  // of the rows in the set
};

// The memory of a search. Each shard reuses it.
class QueryMemory {
 public:
  // A should clause with the sum of the bounds of this clause and the clauses before it.
  struct Clause {
    uint32_t id;
    double bound_with_before;
  };
  struct Level {
    MatchedRows child;
    RowSet candidates;
    std::array<double, kQueryWindowRows> must_sums;
    std::array<double, kQueryWindowRows> sums{};  // of should or dis_max clauses; zero between nodes
    std::array<float, kQueryWindowRows> largest;  // of dis_max clauses
    std::vector<uint32_t> counts;                 // of should clauses; zero between nodes; empty until needed
    std::vector<double> coming;                   // for each must clause, the sum of the bounds of this clause and the later ones
    std::vector<Clause> clauses;
  };
  Level& level(size_t depth) {
    while (levels_.size() <= depth) levels_.push_back(std::make_unique<Level>());
    return *levels_[depth];
  }
  DecodedBlocks& blocks() { return blocks_; }

 private:
  std::vector<std::unique_ptr<Level>> levels_;
  DecodedBlocks blocks_;
};

class QueryWindow {
 public:
  // `shards[f]` is the shard of field f. All arguments must outlive this object.
  QueryWindow(const QueryPlan& plan, const std::vector<ScoredField>& fields, const std::vector<const LexicalIndex::Shard*>& shards,
              QueryMemory& memory);

  // Moves the window forward to the global rows [begin, end), at most kQueryWindowRows. Returns an upper bound of their scores,
  // negative if none of them matches.
  float move_to(int64_t begin, int64_t end);

  // Returns the rows of `allowed` that match, with their scores. Rows whose score is at most `floor` may be missing, or may have a
  // wrong score of at most `floor`. Call it once for each window.
  void evaluate(const RowSet& allowed, float floor, MatchedRows& matched);

  uint64_t postings() const { return postings_; }
  uint64_t decoded() const;

 private:
  struct Leaf {
    std::unique_ptr<PostingCursor> cursor;  // null if the shard lacks the term
    int64_t first_row = 0;
    double rows_per_window = 0;
  };

  // What a should clause changes in the level besides its rows.
  struct AddedTo {
    bool counts;  // of the clauses that match, for a minimum
    bool sums;    // of scores
  };

  float bound_of(uint32_t id);
  float bound_of_bool(const PlanNode& node);
  bool has_rows(const PlanNode& node) const;
  template <class Visit>
  void for_each_scored(const PlanNode& node, Visit&& visit) const;
  void evaluate(uint32_t id, const RowSet& allowed, float floor, MatchedRows& matched, size_t depth);
  void evaluate_term(const PlanNode& node, const RowSet& allowed, MatchedRows& matched);
  void evaluate_bool(const PlanNode& node, const RowSet& allowed, float floor, MatchedRows& matched, size_t depth);
  bool match_required(const PlanNode& node, float floor, RowSet& rows, QueryMemory::Level& level, size_t depth);
  void exclude(const PlanNode& node, RowSet& rows, QueryMemory::Level& level, size_t depth);
  void evaluate_dis_max(const PlanNode& node, const RowSet& allowed, float floor, MatchedRows& matched, size_t depth);
  void add_shoulds(const PlanNode& node, const RowSet& allowed, float floor, RowSet& rows, QueryMemory::Level& level, size_t depth);
  void add_should(uint32_t id, const RowSet& allowed, AddedTo added_to, RowSet& rows, QueryMemory::Level& level, size_t depth);
  template <class Visit>
  void for_each_posting(const PlanNode& node, const RowSet& allowed, Visit&& visit);

  const QueryPlan& plan_;
  QueryMemory& memory_;
  std::vector<Leaf> leaves_;
  std::vector<float> bounds_;  // of the nodes in this window
  int64_t begin_ = 0;
  int64_t end_ = 0;
  uint64_t postings_ = 0;
};

}  // namespace trawl::lexical
