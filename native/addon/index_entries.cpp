// Opens, searches and closes indexes.
#include <algorithm>

#include "base/unchanged.hpp"
#include "entries.hpp"
#include "environment.hpp"
#include "request_bitmap.hpp"
#include "search_arrays.hpp"
#include "trawl/search.hpp"

namespace trawl_addon {

namespace {

// The path in an optional field; empty if the field is missing.
std::string optional_path(const Napi::Object& spec, const char* name) {
  const Napi::Value value = spec.Get(name);
  return value.IsUndefined() ? std::string() : path_of(value, name);
}

Napi::Value result_of(Napi::Env env, const trawl::SearchResult& found, const std::string& gpu_failure) {
  const auto count = static_cast<size_t>(found.queries);
  auto rescored = Napi::Float64Array::New(env, count);
  double full_scans = 0;
  for (size_t q = 0; q < count; ++q) {
    rescored[q] = static_cast<double>(found.stats[q].rescored);
    full_scans += found.stats[q].full_scan ? 1 : 0;
  }
  Napi::Object result = search_arrays<Napi::Float64Array>(env, found);
  result.Set("rescored", rescored);
  result.Set("fullScans", full_scans);
  result.Set("gpuFailure", gpu_failure);
  const auto fits = [](int64_t row) { return row < 0; };
  if (std::all_of(found.overflow_rows.begin(), found.overflow_rows.end(), fits)) return result;
  auto overflows = Napi::Float64Array::New(env, count);
  for (size_t q = 0; q < count; ++q) overflows[q] = static_cast<double>(found.overflow_rows[q]);
  result.Set("overflows", overflows);
  return result;
}

}  // namespace

Napi::Value open_index(const Napi::CallbackInfo& info) {
  struct ShardSpec {
    RowsSpec rows;
    std::string codes, prefilter;
  };
  const int64_t id = integer_of(info[0], "id");
  const Napi::Object spec = object_of(info[1], "index");
  const int64_t dimension = dimension_of(spec.Get("dimension"));
  const trawl::Metric metric = metric_of(spec.Get("metric"));
  const Napi::Array list = array_of(spec.Get("shards"), "shards");
  std::vector<ShardSpec> shards;
  int64_t rows = 0;
  for (uint32_t i = 0; i < list.Length(); ++i) {
    const Napi::HandleScope scope(info.Env());
    const Napi::Object shard = object_of(list.Get(i), "shard");
    shards.push_back({rows_of(shard, dimension), optional_path(shard, "codes"), optional_path(shard, "prefilter")});
    rows += shards.back().rows.rows;
    if (rows > kMaxSafeInteger) throw bad_argument(shard.Get("rows"), "rows", "at most 2^53 rows in all shards");
  }
  const Napi::Value live = spec.Get("liveRows");
  std::vector<uint64_t> live_rows;
  if (!live.IsUndefined()) live_rows = bitmap_of(live, "liveRows", rows);
  const bool has_live_rows = !live.IsUndefined();
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>&) {
    trawl::choose_kernels();  // so that no search waits while it times them
    auto index = std::make_shared<OpenIndex>(metric, dimension);
    for (const ShardSpec& shard : shards) {
      std::shared_ptr<const trawl::CodesFile> codes;
      std::shared_ptr<const trawl::PrefilterFile> prefilter;
      if (!shard.prefilter.empty()) prefilter = trawl::PrefilterFile::open(shard.prefilter);
      if (!shard.codes.empty()) {
        codes = trawl::CodesFile::open(shard.codes, prefilter ? trawl::CodesAccess::kSparse : trawl::CodesAccess::kWhole);
      }
      index->add_shard(shard.rows.map(), std::move(codes), std::move(prefilter));
    }
    if (has_live_rows) index->set_live_rows(live_rows);
    return deliver_handle<IndexPointer>(std::move(index), kIndexTag);
  });
}

Napi::Value index_facts(const Napi::CallbackInfo& info) {
  const trawl::Index& index = *index_handle_of(info[0]).object;
  Napi::Object facts = Napi::Object::New(info.Env());
  facts.Set("rows", static_cast<double>(index.rows()));
  facts.Set("residentBytes", static_cast<double>(index.resident_bytes()));
  facts.Set("touchedBytes", static_cast<double>(index.touched_bytes()));
  facts.Set("mappedBytes", static_cast<double>(index.mapped_bytes()));
  facts.Set("sampledPrefilters", static_cast<double>(index.sampled_prefilters()));
  return facts;
}

Napi::Value close_index(const Napi::CallbackInfo& info) {
  index_handle_of(info[0]).object.reset();
  return info.Env().Undefined();
}

Napi::Value upload_index(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const IndexPointer index = index_handle_of(info[1]).object;
  trawl::GpuOptions options;
  options.device = integer_of(info[2], "device");
  options.library = path_of(info[3], "library");
  const Work work = [=](const std::atomic<bool>& cancel) -> Deliver {
    const auto upload = [&] { return std::make_unique<trawl::GpuCodes>(*index, options, pool(), &cancel); };
    auto gpu = std::make_shared<std::unique_ptr<trawl::GpuCodes>>(trawl::over_unchanged(upload, [&] { index->require_unchanged(); }));
    // On the environment's thread, which also starts the searches.
    return [index, gpu](Napi::Env env) {
      index->gpu = std::move(*gpu);
      Napi::Object facts = Napi::Object::New(env);
      facts.Set("name", index->gpu->device_name());
      facts.Set("cuda", index->gpu->driver_version());
      facts.Set("bytes", static_cast<double>(index->gpu->bytes()));
      return facts;
    };
  };
  return jobs_of(info.Env()).start(info.Env(), id, work);
}

Napi::Value gpus(const Napi::CallbackInfo& info) {
  const trawl::GpuList found = trawl::list_gpus(path_of(info[0], "library"));
  Napi::Array list = Napi::Array::New(info.Env(), found.gpus.size());
  for (size_t i = 0; i < found.gpus.size(); ++i) {
    const trawl::GpuFacts& gpu = found.gpus[i];
    Napi::Object facts = Napi::Object::New(info.Env());
    facts.Set("name", gpu.name);
    facts.Set("freeBytes", static_cast<double>(gpu.free_bytes));
    facts.Set("totalBytes", static_cast<double>(gpu.total_bytes));
    facts.Set("problem", gpu.problem);
    list.Set(static_cast<uint32_t>(i), facts);
  }
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("cuda", found.driver_version);
  result.Set("gpus", list);
  return result;
}

Napi::Value search(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const IndexPointer index = index_handle_of(info[1]).object;
  const Napi::Object request = object_of(info[2], "request");
  const Napi::Float32Array values = floats_of(request.Get("queries"), "queries");
  const int64_t count = integer_of(request.Get("count"), "count");
  const int64_t k = integer_of(request.Get("k"), "k", 1);
  const std::string isa = string_of(request.Get("isa"), "isa");
  const auto length = static_cast<int64_t>(values.ElementLength());
  if (length % index->dimension() != 0 || length / index->dimension() != count) {
    throw bad_argument(values, "queries", "count x dimension values (" + std::to_string(length) + " given)");
  }
  auto queries = std::make_shared<std::vector<float>>(values.Data(), values.Data() + length);
  const auto filter = optional_bitmap(request.Get("filter"), "filter", index->rows());
  const Work work = [=](const std::atomic<bool>& cancel) -> Deliver {
    std::vector<uint64_t> scratch;
    trawl::SearchOptions options;
    options.k = k;
    options.kernels = &trawl::choose_kernels(isa);
    options.cancel = &cancel;
    options.filter_bits = filter ? filter->words(scratch) : nullptr;
    options.gpu = index->gpu.get();
    if (options.gpu != nullptr && !options.gpu->has_failed()) options.batch_queries = options.gpu->max_queries();
    const auto scan = [&] { return trawl::search(*index, queries->data(), count, options, pool()); };
    auto found = std::make_shared<trawl::SearchResult>(trawl::over_unchanged(scan, [&] { index->require_unchanged(); }));
    const std::string failure = options.gpu != nullptr ? options.gpu->failure() : "";
    return [found, failure](Napi::Env env) { return result_of(env, *found, failure); };
  };
  return jobs_of(info.Env()).start(info.Env(), id, work, hold(filter));
}

}  // namespace trawl_addon
