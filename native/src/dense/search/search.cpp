#include "trawl/search.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/float_environment.hpp"
#include "dense/codes/row_codes.hpp"
#include "dense/kernels/kernels.hpp"
#include "dense/kernels/score.hpp"
#include "dense/search/exact_scan.hpp"
#include "dense/search/query_state.hpp"
#include "dense/search/rescore.hpp"
#include "dense/search/scan_codes.hpp"
#include "dense/search/search_context.hpp"
#include "dense/search/top_k.hpp"
#include "trawl/error.hpp"
#include "trawl/gpu_codes.hpp"
#include "trawl/sizes.hpp"

namespace trawl {

namespace {

constexpr int64_t kMaxCandidates = 65536;  // of a query, unless k needs more

void check_arguments(const Index& index, const float* queries, int64_t count, const SearchOptions& options) {
  if (options.k < 1) throw Error(ErrorCode::kBadArgument, "k must be at least 1, but is " + std::to_string(options.k));
  if (count < 0 || (count > 0 && queries == nullptr))
    throw Error(ErrorCode::kBadArgument, "queries must not be null, and their count not negative");
  if (options.batch_queries < 1) throw Error(ErrorCode::kBadArgument, "batch_queries must be at least 1");
  for (int64_t q = 0; q < count; ++q) {
    const int64_t column = first_not_finite(queries + q * index.dimension(), index.dimension());
    if (column >= 0) {
      throw Error(ErrorCode::kNotFinite, "query " + std::to_string(q) + " is NaN or infinite at column " + std::to_string(column), q,
                  column);
    }
  }
}

// The queries of one batch, which scan the index together.
class Batch {
 public:
  Batch(const SearchContext& context, const float* queries, int64_t count)
      : context_(context),
        index_(context.index),
        count_(count),
        queries_f64_(count * index_.dimension()),
        score_queries_(count),
        states_(count) {
    const int64_t d = index_.dimension();
    const SearchOptions& options = context.options;
    const int64_t k = std::min(options.k, std::max<int64_t>(index_.rows(), 1));
    top_.assign(count, TopK(k));
    for (int64_t q = 0; q < count; ++q) {
      std::copy(queries + q * d, queries + (q + 1) * d, queries_f64_.data() + q * d);
      const bool cosine = index_.metric() == Metric::kCosine;
      score_queries_[q] = {queries_f64_.data() + q * d, cosine ? norm_in_order_f64(queries + q * d, d) : 0.0};
      states_[q].begin(k, options.candidate_capacity,
                       options.candidate_limit > 0 ? options.candidate_limit : std::max(kMaxCandidates, 2 * k));
    }
  }

  // If k is close to the number of rows, the codes exclude too few rows to be worth a pass.
  bool worth_scanning_codes() const { return context_.options.k <= index_.rows() / 4; }

  void search_codes() {
    std::vector<const Shard*> without_codes;
    for (const Shard& shard : index_.shards()) {
      if (!shard.codes) without_codes.push_back(&shard);
    }
    if (without_codes.size() == index_.shards().size()) return search_all_rows();
    if (!without_codes.empty()) {
      std::vector<TopK*> top;
      for (TopK& each : top_) top.push_back(&each);
      exact_scan(context_, without_codes, score_queries_, top);
      for (int64_t q = 0; q < count_; ++q) top_[q].for_each([&](const Scored& s) { states_[q].update_threshold(s.score_f64); });
    }
    const AlignedBuffer<double> unit = unit_queries();
    scan_codes(context_, index_.metric() == Metric::kCosine ? unit.data() : queries_f64_.data(), states_);
    rescored_.assign(count_, 0);
    context_.pool.run(count_, [&](int64_t q) {
      context_.check_cancelled();
      if (!states_[q].needs_full_scan()) rescored_[q] = rescore(context_, states_[q], score_queries_[q], top_[q]);
    });
    run_full_scans();
  }

  void search_all_rows() {
    for (QueryState& state : states_) state.fall_back_to_full_scan();
    run_full_scans();
  }

  void write(SearchResult& result, int64_t first_query) {
    for (int64_t q = 0; q < count_; ++q) {
      const std::vector<Scored> best = top_[q].take_sorted();
      const int64_t query = first_query + q;
      const auto does_not_fit = [&](const Scored& hit) {
        return std::isinf(static_cast<float>(external_score(index_.metric(), hit.score_f64)));
      };
      const auto overflow = std::find_if(best.begin(), best.end(), does_not_fit);
      if (overflow != best.end()) {
        result.overflow_rows[query] = overflow->row;
      } else {
        result.counts[query] = best.size();
        for (size_t i = 0; i < best.size(); ++i) {
          result.rows[query * result.k + i] = best[i].row;
          result.scores[query * result.k + i] = external_score(index_.metric(), best[i].score_f64);
        }
      }
      const QueryState& state = states_[q];
      result.stats[query] = {state.survivors(), state.refined(), rescored_.empty() ? 0 : rescored_[q], state.growths(),
                             state.needs_full_scan()};
    }
  }

 private:
  // For cosine the codes encode unit vectors, so the queries must be unit vectors too. Empty for other metrics.
  AlignedBuffer<double> unit_queries() const {
    if (index_.metric() != Metric::kCosine) return {};
    const int64_t d = index_.dimension();
    AlignedBuffer<double> unit(count_ * d);
    for (int64_t q = 0; q < count_; ++q) {
      const double norm = score_queries_[q].norm_f64;
      for (int64_t j = 0; j < d; ++j) unit[q * d + j] = norm > 0 ? queries_f64_[q * d + j] / norm : 0.0;
    }
    return unit;
  }

  void run_full_scans() {
    std::vector<ScoreQuery> queries;
    std::vector<TopK*> top;
    for (int64_t q = 0; q < count_; ++q) {
      if (!states_[q].needs_full_scan()) continue;
      top_[q].clear();
      top.push_back(&top_[q]);
      queries.push_back(score_queries_[q]);
    }
    std::vector<const Shard*> all;
    for (const Shard& shard : index_.shards()) all.push_back(&shard);
    exact_scan(context_, all, queries, top);
  }

  const SearchContext& context_;
  const Index& index_;
  int64_t count_;
  AlignedBuffer<double> queries_f64_;
  std::vector<ScoreQuery> score_queries_;
  std::vector<QueryState> states_;
  std::vector<TopK> top_;
  std::vector<int64_t> rescored_;
};

}  // namespace

SearchResult search(const Index& index, const float* queries, int64_t count, const SearchOptions& options, ThreadPool& pool) {
  const FloatEnvironment environment;
  check_arguments(index, queries, count, options);
  const KernelChoice& choice = options.kernels != nullptr ? *options.kernels : choose_kernels();
  SearchResult result;
  result.queries = count;
  result.k = hit_places(count, options.k, index.rows());
  result.counts.assign(count, 0);
  result.rows.assign(count * result.k, -1);
  result.scores.assign(count * result.k, 0.0);
  result.overflow_rows.assign(count, -1);
  result.stats.assign(count, {});
  SearchOptions used = options;
  const SearchContext context(index, used, choice, pool);
  // Two float64 copies of a batch's queries are in memory, so batches of very long vectors are smaller.
  const int64_t fit = std::max<int64_t>(kGroupQueries, (int64_t{64} << 20) / (8 * index.dimension()));
  const int64_t batch_queries = std::min(options.batch_queries, fit);
  for (int64_t first = 0; first < count; first += batch_queries) {
    context.check_cancelled();
    const auto search_batch = [&] {
      Batch batch(context, queries + first * index.dimension(), std::min(batch_queries, count - first));
      if (batch.worth_scanning_codes()) {
        batch.search_codes();
      } else {
        batch.search_all_rows();
      }
      batch.write(result, first);
    };
    if (used.gpu != nullptr && used.gpu->has_failed()) used.gpu = nullptr;
    try {
      search_batch();
    } catch (const Error& error) {
      if (used.gpu == nullptr || error.code != ErrorCode::kDeviceUnavailable) throw;
      used.gpu = nullptr;
      search_batch();  // with new states: a row that is offered to a state twice would make its threshold invalid
    }
  }
  return result;
}

}  // namespace trawl
