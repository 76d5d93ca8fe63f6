#include "lexical/query_window.hpp"

#include <algorithm>
#include <cmath>

#include "lexical/window_sums.hpp"

namespace trawl::lexical {
namespace {

// Looking up a row costs about as much as reading this many postings.
constexpr double kPostingsPerLookup = 16;

bool is_empty(const RowSet& rows) {
  return std::all_of(rows.begin(), rows.end(), [](uint64_t word) { return word == 0; });
}

uint32_t count_of(const RowSet& rows) {
  uint32_t count = 0;
  for (const uint64_t word : rows) count += static_cast<uint32_t>(__builtin_popcountll(word));
  return count;
}

bool contains(const RowSet& rows, uint32_t at) { return (rows[at >> 6] >> (at & 63) & 1) != 0; }
void include(RowSet& rows, uint32_t at) { rows[at >> 6] |= uint64_t{1} << (at & 63); }

// Calls visit(row) for each row of the set, and removes the row if visit returns false.
template <class Visit>
void keep_if(RowSet& rows, Visit&& visit) {
  for (uint32_t word = 0; word < rows.size(); word++) {
    for_each_bit(rows[word], [&](uint32_t bit) {
      if (!visit(word * 64 + bit)) rows[word] &= ~(uint64_t{1} << bit);
    });
  }
}

template <class Visit>
void for_each(const RowSet& rows, Visit&& visit) {
  for (uint32_t word = 0; word < rows.size(); word++) {
    for_each_bit(rows[word], [&](uint32_t bit) { visit(word * 64 + bit); });
  }
}

}  // namespace

QueryWindow::QueryWindow(const QueryPlan& plan, const std::vector<ScoredField>& fields,
                         const std::vector<const LexicalIndex::Shard*>& shards, QueryMemory& memory)
    : plan_(plan), memory_(memory), leaves_(plan.leaves), bounds_(plan.nodes.size(), -1) {
  for (const PlanNode& node : plan.nodes) {
    if (node.type != PlanNode::Type::kTerm) continue;
    const LexicalIndex::Shard& shard = *shards[node.field];
    const TermPostings postings = shard.file->find(*node.term);
    if (postings.count == 0) continue;
    Leaf& leaf = leaves_[node.leaf];
    leaf.cursor = std::make_unique<PostingCursor>(*shard.file, postings, node.number, fields[node.field].inverse, memory.blocks());
    leaf.first_row = shard.first_row;
    leaf.rows_per_window = static_cast<double>(postings.count) * kQueryWindowRows / shard.file->rows();
    postings_ += postings.count;
  }
}

uint64_t QueryWindow::decoded() const {
  uint64_t decoded = 0;
  for (const Leaf& leaf : leaves_) decoded += leaf.cursor == nullptr ? 0 : leaf.cursor->decoded();
  return decoded;
}

float QueryWindow::move_to(int64_t begin, int64_t end) {
  begin_ = begin;
  end_ = end;
  return bound_of(plan_.root);
}

// Sets the bounds of a node and of the nodes below it. Below a node with a negative bound, nodes may keep the bounds of an earlier window;
// nothing reads these.
float QueryWindow::bound_of(uint32_t id) {
  const PlanNode& node = plan_.nodes[id];
  float bound = -1;
  switch (node.type) {
    case PlanNode::Type::kTerm: {
      Leaf& leaf = leaves_[node.leaf];
      if (leaf.cursor == nullptr) break;
      const auto begin = static_cast<uint32_t>(begin_ - leaf.first_row);
      const auto end = static_cast<uint32_t>(end_ - leaf.first_row);
      if (node.scores) {
        bound = leaf.cursor->bound_in(begin, end);
      } else {
        bound = leaf.cursor->may_have_rows_in(begin, end) ? 0 : -1;
      }
      break;
    }
    case PlanNode::Type::kMatchAll: bound = node.number; break;
    case PlanNode::Type::kRows:
      if (node.scored.empty()) {
        bound = has_rows(node) ? node.number : -1;
      } else {
        for_each_scored(node, [&](const RowWithScore& one) { bound = std::max(bound, one.score); });
      }
      break;
    case PlanNode::Type::kConstantScore: bound = bound_of(node.any[0]) < 0 ? -1 : node.number; break;
    case PlanNode::Type::kDisMax: {
      float largest = -1;
      double sum = 0;
      for (const uint32_t child : node.any) {
        const float one = bound_of(child);
        if (one < 0) continue;
        largest = std::max(largest, one);
        sum += one;
      }
      if (largest < 0) break;
      // All scores but the largest: their sum does not fall if a score rises. The factor covers the rounding of the difference.
      const double others = std::max(0.0, sum * sum_factor(node.any.size()) - largest);
      bound = static_cast<float>(largest + others * node.number);
      break;
    }
    case PlanNode::Type::kBool: bound = bound_of_bool(node); break;
  }
  return bounds_[id] = bound;
}

// Calls visit(row) for the rows of a set with scores that lie in the window.
template <class Visit>
void QueryWindow::for_each_scored(const PlanNode& node, Visit&& visit) const {
  const auto before = [](const RowWithScore& one, int64_t row) { return one.row < row; };
  auto one = std::lower_bound(node.scored.begin(), node.scored.end(), begin_, before);
  for (; one != node.scored.end() && one->row < end_; ++one) visit(*one);
}

bool QueryWindow::has_rows(const PlanNode& node) const {
  uint64_t any = 0;
  for (int64_t first = begin_; first < end_; first += 64) any |= bits_of(node.rows, first, end_);
  return any != 0;
}

// Adds the bounds in the order of the clauses. Scores are added in this order too, or in another one if all their sums are exact. Rounding
// is monotone, so no sum of scores is larger than the sum of the bounds.
float QueryWindow::bound_of_bool(const PlanNode& node) {
  for (const uint32_t child : node.filter) {
    if (bound_of(child) < 0) return -1;
  }
  double must = 0;
  for (const uint32_t child : node.must) {
    const float one = bound_of(child);
    if (one < 0) return -1;
    must += one;
  }
  int64_t present = 0;
  double should = 0;
  for (const uint32_t child : node.any) {
    const float one = bound_of(child);
    if (one < 0) continue;
    present++;
    should += one;
  }
  if (present < node.minimum) return -1;
  for (const uint32_t child : node.must_not) bound_of(child);
  return static_cast<float>(must) + static_cast<float>(should);
}

void QueryWindow::evaluate(const RowSet& allowed, float floor, MatchedRows& matched) { evaluate(plan_.root, allowed, floor, matched, 0); }

void QueryWindow::evaluate(uint32_t id, const RowSet& allowed, float floor, MatchedRows& matched, size_t depth) {
  const PlanNode& node = plan_.nodes[id];
  if (bounds_[id] < 0 || (node.scores && bounds_[id] <= floor)) {
    matched.rows.fill(0);
    return;
  }
  switch (node.type) {
    case PlanNode::Type::kTerm: return evaluate_term(node, allowed, matched);
    case PlanNode::Type::kMatchAll:
      matched.rows = allowed;
      matched.scores.fill(node.number);
      return;
    case PlanNode::Type::kRows:
      if (!node.scored.empty()) {
        matched.rows.fill(0);
        for_each_scored(node, [&](const RowWithScore& one) {
          const auto at = static_cast<uint32_t>(one.row - begin_);
          if (!contains(allowed, at)) return;
          include(matched.rows, at);
          matched.scores[at] = one.score;
        });
        return;
      }
      for (size_t word = 0; word < matched.rows.size(); word++) {
        matched.rows[word] = allowed[word] & bits_of(node.rows, begin_ + static_cast<int64_t>(word) * 64, end_);
      }
      matched.scores.fill(node.number);
      return;
    case PlanNode::Type::kConstantScore:
      evaluate(node.any[0], allowed, kNoFloor, matched, depth);
      matched.scores.fill(node.number);
      return;
    case PlanNode::Type::kDisMax: return evaluate_dis_max(node, allowed, floor, matched, depth);
    case PlanNode::Type::kBool: return evaluate_bool(node, allowed, floor, matched, depth);
  }
}

// Calls visit(row, score) for the allowed rows of a term. The score is 0 if it is not needed.
template <class Visit>
void QueryWindow::for_each_posting(const PlanNode& node, const RowSet& allowed, Visit&& visit) {
  const Leaf& leaf = leaves_[node.leaf];
  PostingCursor& cursor = *leaf.cursor;
  const auto begin = static_cast<uint32_t>(begin_ - leaf.first_row);
  const auto end = static_cast<uint32_t>(end_ - leaf.first_row);
  if (count_of(allowed) * kPostingsPerLookup < leaf.rows_per_window) {
    for_each(allowed, [&](uint32_t at) {
      if (cursor.has(begin + at)) visit(at, node.scores ? cursor.score_of(begin + at) : 0);
    });
    return;
  }
  if (!node.scores) {
    cursor.for_each_row_in(begin, end, [&](const uint32_t* rows, uint32_t count) {
      for (uint32_t i = 0; i < count; i++) {
        if (contains(allowed, rows[i] - begin)) visit(rows[i] - begin, 0.0f);
      }
    });
    return;
  }
  cursor.for_each_in(begin, end, [&](const uint32_t* rows, const float* scores, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
      if (contains(allowed, rows[i] - begin)) visit(rows[i] - begin, scores[i]);
    }
  });
}

void QueryWindow::evaluate_term(const PlanNode& node, const RowSet& allowed, MatchedRows& matched) {
  matched.rows.fill(0);
  for_each_posting(node, allowed, [&](uint32_t at, float score) {
    include(matched.rows, at);
    matched.scores[at] = score;
  });
}

void QueryWindow::evaluate_dis_max(const PlanNode& node, const RowSet& allowed, float floor, MatchedRows& matched, size_t depth) {
  QueryMemory::Level& level = memory_.level(depth);
  matched.rows.fill(0);
  // Without a tie breaker, a row needs a clause whose score is above the floor.
  const float clause_floor = node.number == 0 ? floor : kNoFloor;
  for (const uint32_t child : node.any) {
    if (bounds_[child] < 0) continue;
    evaluate(child, allowed, clause_floor, level.child, depth + 1);
    if (!node.scores) {
      for (size_t word = 0; word < matched.rows.size(); word++) matched.rows[word] |= level.child.rows[word];
      continue;
    }
    for_each(level.child.rows, [&](uint32_t at) {
      const float score = level.child.scores[at];
      if (!contains(matched.rows, at)) {
        include(matched.rows, at);
        level.largest[at] = score;
      } else if (score >= level.largest[at]) {
        level.sums[at] += level.largest[at];
        level.largest[at] = score;
      } else {
        level.sums[at] += score;
      }
    });
  }
  if (!node.scores) return;
  for_each(matched.rows, [&](uint32_t at) {
    matched.scores[at] = static_cast<float>(level.largest[at] + level.sums[at] * node.number);
    level.sums[at] = 0;
  });
}

void QueryWindow::evaluate_bool(const PlanNode& node, const RowSet& allowed, float floor, MatchedRows& matched, size_t depth) {
  QueryMemory::Level& level = memory_.level(depth);
  const bool scores_floor = node.scores && floor > kNoFloor;
  const bool is_disjunction = node.must.empty() && node.filter.empty();
  if (!is_disjunction) {
    matched.rows = allowed;
    if (!match_required(node, scores_floor ? floor : kNoFloor, matched.rows, level, depth)) return;
    exclude(node, matched.rows, level, depth);
    if (node.any.empty()) {
      if (!node.scores) return;
      for_each(matched.rows, [&](uint32_t at) { matched.scores[at] = node.must.empty() ? 0.0f : static_cast<float>(level.must_sums[at]); });
      return;
    }
  }
  RowSet& found = level.candidates;
  found.fill(0);
  const bool shoulds_alone_score = node.must.empty();
  add_shoulds(node, is_disjunction ? allowed : matched.rows, scores_floor && shoulds_alone_score ? floor : kNoFloor, found, level, depth);
  if (node.minimum > 1) {
    keep_if(found, [&](uint32_t at) {
      const bool enough = level.counts[at] >= node.minimum;
      level.counts[at] = 0;
      if (!enough) level.sums[at] = 0;
      return enough;
    });
  }
  if (is_disjunction) {
    matched.rows = found;
    exclude(node, matched.rows, level, depth);
  } else if (node.minimum > 0) {
    matched.rows = found;
  }
  if (!node.scores) return;
  for_each(matched.rows, [&](uint32_t at) {
    const float must = node.must.empty() ? 0.0f : static_cast<float>(level.must_sums[at]);
    matched.scores[at] = contains(found, at) ? must + static_cast<float>(level.sums[at]) : must;
  });
  for_each(found, [&](uint32_t at) { level.sums[at] = 0; });
}

// Keeps the rows that match all must and filter clauses, and sums the scores of their must clauses. Returns false if there are
// none.
bool QueryWindow::match_required(const PlanNode& node, float floor, RowSet& rows, QueryMemory::Level& level, size_t depth) {
  double should = 0;
  std::vector<double>& coming = level.coming;
  if (floor > kNoFloor) {
    coming.assign(node.must.size() + 1, 0);
    for (size_t i = node.must.size(); i > 0; i--) coming[i - 1] = coming[i] + bounds_[node.must[i - 1]];
    for (const uint32_t child : node.any) should += std::max(bounds_[child], 0.0f);
  }
  size_t filters = 0;
  size_t musts = 0;
  while (filters < node.filter.size() || musts < node.must.size()) {
    const bool is_filter = musts == node.must.size() ||
                           (filters < node.filter.size() && plan_.nodes[node.filter[filters]].cost < plan_.nodes[node.must[musts]].cost);
    const uint32_t child = is_filter ? node.filter[filters++] : node.must[musts];
    const bool passes_floor = !is_filter && node.must.size() == 1 && node.any.empty();
    evaluate(child, rows, passes_floor ? floor : kNoFloor, level.child, depth + 1);
    for (size_t word = 0; word < rows.size(); word++) rows[word] &= level.child.rows[word];
    if (!is_filter && node.scores) {
      const bool is_first = musts == 0;
      const double factor = sum_factor(2 * node.must.size());
      keep_if(rows, [&](uint32_t at) {
        level.must_sums[at] = (is_first ? 0 : level.must_sums[at]) + level.child.scores[at];
        if (floor == kNoFloor) return true;
        return static_cast<float>((level.must_sums[at] + coming[musts + 1]) * factor) + static_cast<float>(should) > floor;
      });
    }
    if (!is_filter) musts++;
    if (is_empty(rows)) return false;
  }
  return true;
}

void QueryWindow::exclude(const PlanNode& node, RowSet& rows, QueryMemory::Level& level, size_t depth) {
  for (const uint32_t child : node.must_not) {
    if (bounds_[child] < 0) continue;
    evaluate(child, rows, kNoFloor, level.child, depth + 1);
    for (size_t word = 0; word < rows.size(); word++) rows[word] &= ~level.child.rows[word];
  }
}

void QueryWindow::add_should(uint32_t id, const RowSet& allowed, AddedTo added_to, RowSet& rows, QueryMemory::Level& level, size_t depth) {
  const PlanNode& node = plan_.nodes[id];
  const auto add = [&](uint32_t at, float score) {
    include(rows, at);
    if (added_to.sums) level.sums[at] += score;
    if (added_to.counts) level.counts[at]++;
  };
  if (node.type == PlanNode::Type::kTerm) return for_each_posting(node, allowed, add);
  evaluate(id, allowed, kNoFloor, level.child, depth + 1);
  for_each(level.child.rows, [&](uint32_t at) { add(at, level.child.scores[at]); });
}

// Sums the should clauses of the allowed rows. If only a few clauses can bring a row above the floor, the other clauses are looked
// up only for the rows of these few, as in MaxScore (lexical_search.cpp).
void QueryWindow::add_shoulds(const PlanNode& node, const RowSet& allowed, float floor, RowSet& rows, QueryMemory::Level& level,
                              size_t depth) {
  const bool counts = node.minimum > 1;
  if (counts && level.counts.empty()) level.counts.resize(kQueryWindowRows);
  if (floor == kNoFloor || counts || node.order_matters) {
    for (const uint32_t child : node.any) {
      if (bounds_[child] >= 0) add_should(child, allowed, {counts, node.scores}, rows, level, depth);
    }
    return;
  }
  std::vector<QueryMemory::Clause>& clauses = level.clauses;
  clauses.clear();
  for (const uint32_t child : node.any) {
    if (bounds_[child] >= 0) clauses.push_back({child, 0});
  }
  std::sort(clauses.begin(), clauses.end(), [&](const auto& a, const auto& b) { return bounds_[a.id] < bounds_[b.id]; });
  // The sums of scores are exact here, so a sum of bounds, which rounding may change, is never smaller than the sum of the scores.
  double sum = 0;
  size_t non_essential = 0;
  for (size_t i = 0; i < clauses.size(); i++) {
    sum += bounds_[clauses[i].id];
    clauses[i].bound_with_before = sum;
    if (static_cast<float>(clauses[i].bound_with_before) <= floor) non_essential = i + 1;
  }
  constexpr AddedTo only_sums{/*counts=*/false, /*sums=*/true};
  for (size_t i = non_essential; i < clauses.size(); i++) add_should(clauses[i].id, allowed, only_sums, rows, level, depth);
  for (size_t i = non_essential; i > 0; i--) {
    keep_if(rows, [&](uint32_t at) {
      const bool can_pass = static_cast<float>(level.sums[at] + clauses[i - 1].bound_with_before) > floor;
      if (!can_pass) level.sums[at] = 0;
      return can_pass;
    });
    if (is_empty(rows)) return;
    const RowSet found = rows;
    add_should(clauses[i - 1].id, found, only_sums, rows, level, depth);
  }
}

}  // namespace trawl::lexical
