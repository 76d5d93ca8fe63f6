// Opens, searches and explains inverted indexes.
#include <algorithm>
#include <map>

#include "base/cancel.hpp"
#include "base/unchanged.hpp"
#include "entries.hpp"
#include "environment.hpp"
#include "lexical_arguments.hpp"
#include "lexical_queries.hpp"
#include "request_bitmap.hpp"
#include "search_arrays.hpp"
#include "trawl/error.hpp"
#include "trawl/lexical_verify.hpp"

namespace trawl_addon {

using namespace trawl::lexical;

namespace {

LexicalOptions options_of(const Napi::Value& value) {
  const Napi::Object parameters = object_of(value, "parameters");
  LexicalOptions options;
  options.k1 = static_cast<float>(number_of(parameters.Get("k1"), "k1"));
  options.b = static_cast<float>(number_of(parameters.Get("b"), "b"));
  options.factor_k1_plus_1 = boolean_of(parameters.Get("k1Factor"), "k1Factor");
  return options;
}

// The bitmap of live rows that are also in the filter, in `scratch` if it is a new one; nullptr: all rows.
const uint64_t* rows_to_search(const LexicalHolder& holder, const RequestBitmap* filter, std::vector<uint64_t>& scratch) {
  const std::vector<uint64_t>& live = holder.live_rows;
  if (filter == nullptr) return live.empty() ? nullptr : live.data();
  const uint64_t* const words = filter->words(scratch);
  if (live.empty()) return words;
  std::vector<uint64_t> both(live);
  for (size_t i = 0; i < both.size(); i++) both[i] &= words[i];
  scratch = std::move(both);
  return scratch.data();
}

Napi::Value result_of(Napi::Env env, const LexicalResult& found, const std::vector<uint32_t>& terms) {
  const auto count = static_cast<size_t>(found.queries);
  auto term_counts = Napi::Uint32Array::New(env, count);
  auto postings = Napi::Float64Array::New(env, count);
  auto read = Napi::Float64Array::New(env, count);
  for (size_t q = 0; q < count; q++) {
    term_counts[q] = terms[q];
    postings[q] = static_cast<double>(found.stats[q].postings);
    read[q] = static_cast<double>(found.stats[q].postings_decoded);
  }
  Napi::Object result = search_arrays<Napi::Float32Array>(env, found);
  result.Set("terms", term_counts);
  result.Set("postings", postings);
  result.Set("postingsRead", read);
  if (!found.totals.empty()) {
    auto totals = Napi::Float64Array::New(env, count);
    for (size_t q = 0; q < count; q++) totals[q] = static_cast<double>(found.totals[q]);
    result.Set("totals", totals);
  }
  return result;
}

struct Explanation {
  BagOfWords query;
  std::vector<std::vector<ExplainedTerm>> rows;
  std::vector<uint32_t> found;        // the terms that any of the rows has, rising
  std::vector<uint64_t> frequencies;  // of each of them
};

// Arrays of numbers: an object for each term of each row would occupy the event loop for long.
Napi::Value explanation_arrays(Napi::Env env, const Explanation& explained) {
  const size_t distinct = explained.found.size();
  Napi::Array names = Napi::Array::New(env, distinct);
  auto boosts = Napi::Float64Array::New(env, distinct);
  auto frequencies = Napi::Float64Array::New(env, distinct);
  for (size_t i = 0; i < distinct; i++) {
    const WeightedTerm& term = explained.query[explained.found[i]];
    names.Set(static_cast<uint32_t>(i), Napi::String::New(env, term.term));
    boosts[i] = static_cast<double>(term.boost);
    frequencies[i] = static_cast<double>(explained.frequencies[i]);
  }
  size_t entries = 0;
  for (const auto& row : explained.rows) entries += row.size();
  auto counts = Napi::Uint32Array::New(env, explained.rows.size());
  auto terms = Napi::Uint32Array::New(env, entries);
  auto scores = Napi::Float32Array::New(env, entries);
  size_t at = 0;
  for (size_t i = 0; i < explained.rows.size(); i++) {
    counts[i] = static_cast<uint32_t>(explained.rows[i].size());
    for (const ExplainedTerm& part : explained.rows[i]) {
      terms[at] =
          static_cast<uint32_t>(std::lower_bound(explained.found.begin(), explained.found.end(), part.term) - explained.found.begin());
      scores[at++] = part.score;
    }
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("names", names);
  result.Set("boosts", boosts);
  result.Set("documentFrequencies", frequencies);
  result.Set("counts", counts);
  result.Set("terms", terms);
  result.Set("scores", scores);
  return result;
}

}  // namespace

Napi::Value analyse(const Napi::CallbackInfo& info) {
  const Analyser analyser = analyser_of(info[0]);
  const std::string text = string_of(info[1], "text");
  Terms terms;
  trawl::lexical::analyse(analyser, text, terms);
  Napi::Array list = Napi::Array::New(info.Env(), terms.size());
  for (size_t i = 0; i < terms.size(); i++) {
    list.Set(static_cast<uint32_t>(i), Napi::String::New(info.Env(), terms[i].data(), terms[i].size()));
  }
  return list;
}

Napi::Value open_lexical(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const Napi::Object spec = object_of(info[1], "index");
  const std::vector<std::string> shards = paths_of(spec.Get("shards"), "shards");
  const Napi::Value deleted_path = spec.Get("deleted"), live = spec.Get("liveRows");
  const bool has_deleted = !deleted_path.IsUndefined(), has_live_rows = !live.IsUndefined();
  const std::string deleted = has_deleted ? path_of(deleted_path, "deleted") : std::string();
  // Copied before the number of rows is known.
  std::vector<uint8_t> live_bytes;
  if (has_live_rows) {
    const Napi::Uint8Array bytes = bytes_of(live, "liveRows");
    live_bytes.assign(bytes.Data(), bytes.Data() + bytes.ElementLength());
  }
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>&) {
    auto holder = std::make_shared<LexicalHolder>();
    for (const std::string& path : shards) holder->index.add_shard(path);
    if (has_deleted) holder->index.set_deleted(deleted);
    const int64_t rows = holder->index.rows();
    if (has_live_rows && live_bytes.size() != static_cast<size_t>(rows + 7) / 8) {
      throw trawl::Error(trawl::ErrorCode::kBadFile, "liveRows has " + std::to_string(live_bytes.size()) + " bytes, but the index has " +
                                                         std::to_string(rows) + " rows");
    }
    if (has_live_rows) {
      holder->live_rows.assign(static_cast<size_t>(rows + 63) / 64, 0);
      std::copy(live_bytes.begin(), live_bytes.end(), reinterpret_cast<uint8_t*>(holder->live_rows.data()));
    }
    return deliver_handle<LexicalPointer>(std::move(holder), kLexicalTag);
  });
}

Napi::Value lexical_facts(const Napi::CallbackInfo& info) {
  const LexicalIndex& index = lexical_handle_of(info[0]).object->index;
  Napi::Object facts = Napi::Object::New(info.Env());
  facts.Set("rows", static_cast<double>(index.rows()));
  facts.Set("documents", static_cast<double>(index.counts().documents));
  facts.Set("tokens", static_cast<double>(index.counts().tokens));
  facts.Set("analyser", analyser_name(index.analyser()));
  facts.Set("mappedBytes", static_cast<double>(index.mapped_bytes()));
  return facts;
}

Napi::Value close_lexical(const Napi::CallbackInfo& info) {
  lexical_handle_of(info[0]).object.reset();
  return info.Env().Undefined();
}

Napi::Value search_lexical(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const LexicalPointer holder = lexical_handle_of(info[1]).object;
  const Napi::Object request = object_of(info[2], "request");
  const Napi::Array list = array_of(request.Get("queries"), "queries");
  auto queries = std::make_shared<std::vector<std::string>>();
  for (uint32_t i = 0; i < list.Length(); i++) {
    const Napi::HandleScope scope(info.Env());
    queries->push_back(string_of(list.Get(i), "query"));
  }
  const int64_t k = integer_of(request.Get("k"), "k", 1);
  const LexicalOptions parameters = options_of(request.Get("parameters"));
  const auto filter = optional_bitmap(request.Get("filter"), "filter", holder->index.rows());
  const Work work = [=](const std::atomic<bool>& cancel) -> Deliver {
    std::vector<uint64_t> scratch;
    LexicalOptions options = parameters;
    options.k = k;
    options.cancel = &cancel;
    options.filter_bits = rows_to_search(*holder, filter.get(), scratch);
    std::vector<BagOfWords> bags(queries->size());
    std::vector<uint32_t> terms(queries->size());
    for (size_t i = 0; i < bags.size(); i++) {
      trawl::check_cancelled(&cancel);
      bags[i] = bag_of_words(holder->index.analyser(), (*queries)[i]);
      terms[i] = static_cast<uint32_t>(bags[i].size());
    }
    const auto scan = [&] { return lexical_search(holder->index, bags, options, pool()); };
    auto found = std::make_shared<LexicalResult>(trawl::over_unchanged(scan, [&] { holder->index.require_unchanged(); }));
    return [found, terms](Napi::Env env) { return result_of(env, *found, terms); };
  };
  return jobs_of(info.Env()).start(info.Env(), id, work, hold(filter));
}

Napi::Value search_lexical_fields(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const Napi::Array list = array_of(info[1], "fields");
  std::vector<LexicalPointer> holders;
  std::vector<const LexicalIndex*> indexes;
  std::vector<Analyser> analysers;
  std::map<std::string, uint32_t> names;
  for (uint32_t i = 0; i < list.Length(); i++) {
    const Napi::HandleScope scope(info.Env());
    const Napi::Object field = object_of(list.Get(i), "field");
    if (!names.emplace(string_of(field.Get("name"), "name"), i).second) {
      throw bad_argument(field.Get("name"), "name", "another name for each field");
    }
    holders.push_back(lexical_handle_of(field.Get("index")).object);
    indexes.push_back(&holders.back()->index);
    analysers.push_back(indexes.back()->analyser());
  }
  if (holders.empty()) throw bad_argument(list, "fields", "an array of at least one field");
  const Napi::Object request = object_of(info[2], "request");
  const auto queries = std::make_shared<LexicalQueries>(request.Get("queries"), names, indexes[0]->rows());
  const int64_t k = integer_of(request.Get("k"), "k", 1);
  QueryOptions counted = options_of(request.Get("parameters"));
  const auto filter = optional_bitmap(request.Get("filter"), "filter", indexes[0]->rows());
  const Napi::Value count = request.Get("count"), min_score = request.Get("minScore");
  if (!count.IsUndefined()) counted.count = integer_of(count, "count", 0);
  if (!min_score.IsUndefined()) counted.min_score = static_cast<float>(number_of(min_score, "minScore"));
  const Work work = [=](const std::atomic<bool>& cancel) -> Deliver {
    std::vector<uint64_t> scratch;
    QueryOptions options = counted;
    options.k = k;
    options.cancel = &cancel;
    options.filter_bits = rows_to_search(*holders[0], filter.get(), scratch);
    queries->analyse(analysers, cancel);
    std::vector<uint32_t> terms(queries->trees().size());
    for (size_t i = 0; i < terms.size(); i++) terms[i] = queries->count_terms(i);
    const auto scan = [&] { return lexical_search(indexes, queries->trees(), options, pool()); };
    const auto require_unchanged = [&] {
      for (const LexicalIndex* index : indexes) index->require_unchanged();
    };
    auto found = std::make_shared<LexicalResult>(trawl::over_unchanged(scan, require_unchanged));
    return [found, terms](Napi::Env env) { return result_of(env, *found, terms); };
  };
  return jobs_of(info.Env()).start(info.Env(), id, work, hold(filter));
}

Napi::Value explain_lexical(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const LexicalPointer holder = lexical_handle_of(info[1]).object;
  const Napi::Object request = object_of(info[2], "request");
  const std::string query = string_of(request.Get("query"), "query");
  const Napi::Float64Array list = doubles_of(request.Get("rows"), "rows");
  std::vector<int64_t> rows;
  for (size_t i = 0; i < list.ElementLength(); i++) {
    rows.push_back(integer_of(list.Get(static_cast<uint32_t>(i)), "row", 0, holder->index.rows() - 1));
  }
  const LexicalOptions parameters = options_of(request.Get("parameters"));
  const auto weight = static_cast<float>(number_of(request.Get("weight"), "weight"));
  const int64_t most = integer_of(request.Get("maxTerms"), "maxTerms");
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>& cancel) -> Deliver {
    LexicalOptions options = parameters;
    options.cancel = &cancel;
    auto explained = std::make_shared<Explanation>();
    explained->query = bag_of_words(holder->index.analyser(), query);
    for (WeightedTerm& term : explained->query) term.boost = weight * term.boost;
    const auto require_unchanged = [&] { holder->index.require_unchanged(); };
    explained->rows =
        trawl::over_unchanged([&] { return explain(holder->index, explained->query, rows, options, most); }, require_unchanged);
    std::vector<bool> is_found(explained->query.size());
    for (const auto& row : explained->rows) {
      for (const ExplainedTerm& part : row) is_found[part.term] = true;
    }
    for (size_t term = 0; term < is_found.size(); term++) {
      if (!is_found[term]) continue;
      explained->found.push_back(static_cast<uint32_t>(term));
      explained->frequencies.push_back(holder->index.document_frequency(explained->query[term].term));
    }
    require_unchanged();
    return [explained](Napi::Env env) { return explanation_arrays(env, *explained); };
  });
}

Napi::Value verify_lexical(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const std::string path = path_of(info[1], "path");
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>& cancel) -> Deliver {
    const std::string problem = trawl::lexical::verify_lexical(path, &cancel);
    return [problem](Napi::Env env) -> Napi::Value {
      if (problem.empty()) return env.Null();
      return Napi::String::New(env, problem);
    };
  });
}

}  // namespace trawl_addon
