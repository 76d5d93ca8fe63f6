// The skin between Node and the core: converts and checks arguments, hands the work to threads, turns results into typed
// arrays. The only file besides jobs.* that knows Node; src/vector-index/kernel.ts has the types and the only caller.
#include <napi.h>

#include <cstring>

#include "jobs.hpp"
#include "trawl/trawl.hpp"

namespace trawl_addon {
namespace {

struct AddonData {
  explicit AddonData(Napi::Env env) : jobs(env) {}
  Jobs jobs;
};

Jobs& jobs_of(Napi::Env env) { return env.GetInstanceData<AddonData>()->jobs; }

// Shared by every environment of the process: threads of several engines would only fight for the same cores.
trawl::ThreadPool& pool() {
  static trawl::ThreadPool* shared = new trawl::ThreadPool(0);  // never destroyed: threads may outlive static objects
  return *shared;
}

using IndexPointer = std::shared_ptr<const trawl::Index>;
using WriterPointer = std::shared_ptr<trawl::CodesWriter>;

// A handle that JavaScript holds: frees the object when it is collected or closed, whichever comes first.
template <typename T>
struct Handle {
  T object;
};

constexpr napi_type_tag kIndexTag = {0x7472617769647831, 1};
constexpr napi_type_tag kWriterTag = {0x7472617777727431, 1};

template <typename T>
Napi::Value make_handle(Napi::Env env, T object, const napi_type_tag& tag) {
  auto external = Napi::External<Handle<T>>::New(env, new Handle<T>{std::move(object)},
                                                 [](Napi::Env, Handle<T>* handle) { delete handle; });
  external.TypeTag(&tag);
  return external;
}

template <typename T>
Handle<T>& handle_of(const Napi::Value& value, const napi_type_tag& tag) {
  if (!value.IsExternal() || !value.As<Napi::External<Handle<T>>>().CheckTypeTag(&tag)) {
    throw Napi::TypeError::New(value.Env(), "The handle is not one of this kind.");
  }
  Handle<T>& handle = *value.As<Napi::External<Handle<T>>>().Data();
  if (!handle.object) throw Napi::Error::New(value.Env(), "The handle is closed.");
  return handle;
}

int64_t integer_of(const Napi::Value& value, const char* name) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
  if (!(number >= 0 && number <= 9007199254740991.0) || number != static_cast<double>(static_cast<int64_t>(number))) {
    throw Napi::TypeError::New(value.Env(), std::string(name) + " has to be an integer of at least 0.");
  }
  return static_cast<int64_t>(number);
}

std::vector<float> floats_of(const Napi::Value& value, const char* name) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array) {
    throw Napi::TypeError::New(value.Env(), std::string(name) + " has to be a Float32Array.");
  }
  const auto array = value.As<Napi::Float32Array>();  // Data() honours the view's offset
  return std::vector<float>(array.Data(), array.Data() + array.ElementLength());
}

trawl::Metric metric_of(const Napi::Value& value) {
  const std::string name = value.ToString().Utf8Value();
  if (name == "inner-product") return trawl::Metric::kInnerProduct;
  if (name == "l2") return trawl::Metric::kSquaredL2;
  if (name == "cosine") return trawl::Metric::kCosine;
  throw Napi::TypeError::New(value.Env(), "Unknown metric " + name + ".");
}

// {rows, dtype, segments: [{path, offset, bytes}]}
std::shared_ptr<const trawl::Rows> rows_of(const Napi::Object& spec, int64_t dimension) {
  const std::string dtype = spec.Get("dtype").ToString().Utf8Value();
  const Napi::Array segments = spec.Get("segments").As<Napi::Array>();
  std::vector<trawl::RowSegment> list;
  for (uint32_t i = 0; i < segments.Length(); ++i) {
    const Napi::Object segment = segments.Get(i).As<Napi::Object>();
    list.push_back({segment.Get("path").ToString().Utf8Value(), integer_of(segment.Get("offset"), "offset"),
                    integer_of(segment.Get("bytes"), "bytes")});
  }
  return std::make_shared<const trawl::Rows>(
      list, dtype == "float16" ? trawl::RowType::kFloat16 : trawl::RowType::kFloat32,
      integer_of(spec.Get("rows"), "rows"), dimension);
}

// Errors of the core as JavaScript errors with their code, also from functions that answer at once.
template <typename Body>
Napi::Value guarded(const Napi::CallbackInfo& info, Body body) {
  try {
    return body();
  } catch (const Napi::Error&) {
    throw;
  } catch (...) {
    throw Napi::Error(info.Env(), error_value(info.Env(), std::current_exception()));
  }
}

// isas() → [{name, available, reason}], fastest first
Napi::Value isas(const Napi::CallbackInfo& info) {
  const auto known = trawl::list_isas();
  Napi::Array list = Napi::Array::New(info.Env(), known.size());
  for (size_t i = 0; i < known.size(); ++i) {
    Napi::Object isa = Napi::Object::New(info.Env());
    isa.Set("name", known[i].name);
    isa.Set("available", known[i].available);
    isa.Set("reason", known[i].reason);
    list.Set(static_cast<uint32_t>(i), isa);
  }
  return list;
}

// selectIsa(name) → the name chosen; '' takes the fastest. Throws ISA_UNAVAILABLE.
Napi::Value select_isa(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const std::string name = info[0].ToString().Utf8Value();
    return Napi::String::New(info.Env(), trawl::kernels_name(trawl::select_kernels(name)));
  });
}

// setThreads(n) → threads now; 0 takes one a core
Napi::Value set_threads(const Napi::CallbackInfo& info) {
  pool().set_threads(static_cast<int>(integer_of(info[0], "threads")));
  return Napi::Number::New(info.Env(), pool().threads());
}

// openIndex({metric, dimension, shards: [{rows, dtype, segments, codes?, screen?}]}) → handle
Napi::Value open_index(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const Napi::Object spec = info[0].As<Napi::Object>();
    const int64_t dimension = integer_of(spec.Get("dimension"), "dimension");
    auto index = std::make_shared<trawl::Index>(metric_of(spec.Get("metric")), dimension);
    const Napi::Array shards = spec.Get("shards").As<Napi::Array>();
    for (uint32_t i = 0; i < shards.Length(); ++i) {
      const Napi::Object shard = shards.Get(i).As<Napi::Object>();
      std::shared_ptr<const trawl::CodesFile> codes;
      std::shared_ptr<const trawl::ScreenFile> screen;
      if (shard.Get("screen").IsString()) screen = trawl::ScreenFile::open(shard.Get("screen").ToString().Utf8Value());
      if (shard.Get("codes").IsString()) {
        codes = trawl::CodesFile::open(shard.Get("codes").ToString().Utf8Value(),
                                       screen ? trawl::CodesPlacement::kTouched : trawl::CodesPlacement::kMapped);
      }
      index->add_shard(rows_of(shard, dimension), std::move(codes), std::move(screen));
    }
    return make_handle<IndexPointer>(info.Env(), std::move(index), kIndexTag);
  });
}

// indexFacts(handle) → {rows, residentBytes, touchedBytes, mappedBytes}
Napi::Value index_facts(const Napi::CallbackInfo& info) {
  const trawl::Index& index = *handle_of<IndexPointer>(info[0], kIndexTag).object;
  Napi::Object facts = Napi::Object::New(info.Env());
  facts.Set("rows", static_cast<double>(index.rows()));
  facts.Set("residentBytes", static_cast<double>(index.resident_bytes()));
  facts.Set("touchedBytes", static_cast<double>(index.touched_bytes()));
  facts.Set("mappedBytes", static_cast<double>(index.mapped_bytes()));
  return facts;
}

// closeIndex(handle): running searches keep what they need until they end
Napi::Value close_index(const Napi::CallbackInfo& info) {
  handle_of<IndexPointer>(info[0], kIndexTag).object.reset();
  return info.Env().Undefined();
}

Napi::Value search_arrays(Napi::Env env, const trawl::SearchResult& found) {
  const size_t count = static_cast<size_t>(found.queries);
  const size_t cells = count * static_cast<size_t>(found.k);
  auto counts = Napi::Uint32Array::New(env, count);
  auto rows = Napi::Float64Array::New(env, cells);
  auto scores = Napi::Float64Array::New(env, cells);
  auto rescored = Napi::Float64Array::New(env, count);
  double full_scans = 0;
  for (size_t q = 0; q < count; ++q) {
    counts[q] = static_cast<uint32_t>(found.counts[q]);
    rescored[q] = static_cast<double>(found.stats[q].rescored);
    full_scans += found.stats[q].full_scan ? 1 : 0;
  }
  for (size_t i = 0; i < cells; ++i) rows[i] = static_cast<double>(found.rows[i]);
  if (cells > 0) std::memcpy(scores.Data(), found.scores.data(), cells * sizeof(double));
  Napi::Object result = Napi::Object::New(env);
  result.Set("counts", counts);
  result.Set("rows", rows);
  result.Set("scores", scores);
  result.Set("rescored", rescored);
  result.Set("fullScans", full_scans);
  return result;
}

// search(id, handle, queries, count, k, isa, filter | undefined) → Promise<{counts, rows, scores, rescored, fullScans}>
Napi::Value search(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const IndexPointer index = handle_of<IndexPointer>(info[1], kIndexTag).object;
    auto queries = std::make_shared<std::vector<float>>(floats_of(info[2], "queries"));
    const int64_t count = integer_of(info[3], "count");
    const int64_t k = integer_of(info[4], "k");
    const trawl::Kernels* kernels = &trawl::select_kernels(info[5].ToString().Utf8Value());
    if (static_cast<int64_t>(queries->size()) != count * index->dimension()) {
      throw Napi::RangeError::New(info.Env(), "queries has to hold count × dimension values.");
    }
    std::shared_ptr<std::vector<uint64_t>> filter;
    if (!info[6].IsUndefined()) {
      const auto bytes = info[6].As<Napi::Uint8Array>();
      // The core reads whole words; the bitmap comes in bytes.
      filter = std::make_shared<std::vector<uint64_t>>((static_cast<size_t>(index->rows()) + 63) / 64, 0);
      if (bytes.ElementLength() != (static_cast<size_t>(index->rows()) + 7) / 8) {
        throw Napi::RangeError::New(info.Env(), "filter has to hold one bit a row.");
      }
      if (bytes.ElementLength() > 0) std::memcpy(filter->data(), bytes.Data(), bytes.ElementLength());
    }
    return jobs_of(info.Env()).start(
        info.Env(), info[0].ToNumber().DoubleValue(), [=](const std::atomic<bool>& cancel) -> Deliver {
          trawl::SearchOptions options;
          options.k = k;
          options.kernels = kernels;
          options.cancel = &cancel;
          options.filter_bits = filter ? filter->data() : nullptr;
          auto found = std::make_shared<trawl::SearchResult>(
              trawl::search(*index, queries->data(), count, options, pool()));
          return [found](Napi::Env env) { return search_arrays(env, *found); };
        });
  });
}

// cancel(id)
Napi::Value cancel(const Napi::CallbackInfo& info) {
  jobs_of(info.Env()).cancel(info[0].ToNumber().DoubleValue());
  return info.Env().Undefined();
}

// createCodes(path, metric, dimension) → handle
Napi::Value create_codes(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    auto writer = std::make_shared<trawl::CodesWriter>(info[0].ToString().Utf8Value(), metric_of(info[1]),
                                                       integer_of(info[2], "dimension"));
    return make_handle<WriterPointer>(info.Env(), std::move(writer), kWriterTag);
  });
}

// appendCodes(id, handle, rows) → Promise<rows so far>; one at a time
Napi::Value append_codes(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const WriterPointer writer = handle_of<WriterPointer>(info[1], kWriterTag).object;
    auto rows = std::make_shared<std::vector<float>>(floats_of(info[2], "rows"));
    const int64_t count = integer_of(info[3], "count");
    return jobs_of(info.Env()).start(
        info.Env(), info[0].ToNumber().DoubleValue(), [=](const std::atomic<bool>&) -> Deliver {
          writer->append(rows->data(), count, pool());
          const double total = static_cast<double>(writer->rows());
          return [total](Napi::Env env) { return Napi::Number::New(env, total); };
        });
  });
}

// finishCodes(id, handle) → Promise<rows>; the file is durable then
Napi::Value finish_codes(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const WriterPointer writer = handle_of<WriterPointer>(info[1], kWriterTag).object;
    return jobs_of(info.Env()).start(
        info.Env(), info[0].ToNumber().DoubleValue(), [=](const std::atomic<bool>&) -> Deliver {
          writer->finish(pool());
          const double total = static_cast<double>(writer->rows());
          return [total](Napi::Env env) { return Napi::Number::New(env, total); };
        });
  });
}

// closeCodes(handle): without finishing; the file stays and can be continued
Napi::Value close_codes(const Napi::CallbackInfo& info) {
  handle_of<WriterPointer>(info[0], kWriterTag).object.reset();
  return info.Env().Undefined();
}

// makeScreen(id, path, codesPath, {rows, dtype, segments}, dimension, directions) → Promise<{directions, reason}>; 0 directions
// asks for a choice, and says of the result that no file was made
Napi::Value make_screen(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const std::string path = info[1].ToString().Utf8Value(), codes_path = info[2].ToString().Utf8Value();
    const auto rows = rows_of(info[3].As<Napi::Object>(), integer_of(info[4], "dimension"));
    trawl::ScreenOptions options;
    options.directions = integer_of(info[5], "directions");
    return jobs_of(info.Env()).start(
        info.Env(), info[0].ToNumber().DoubleValue(), [=](const std::atomic<bool>& cancel) -> Deliver {
          const auto codes = trawl::CodesFile::open(codes_path, trawl::CodesPlacement::kTouched);
          const trawl::ScreenResult made = trawl::make_screen(path, *codes, *rows, options, pool(), &cancel);
          return [made](Napi::Env env) {
            Napi::Object result = Napi::Object::New(env);
            result.Set("directions", static_cast<double>(made.directions));
            result.Set("reason", made.reason);
            return result;
          };
        });
  });
}

// What verifyCodes and verifyScreen resolve to.
Deliver deliver_checked(const trawl::VerifyResult& checked) {
  return [checked](Napi::Env env) {
    Napi::Object result = Napi::Object::New(env);
    result.Set("rowsChecked", static_cast<double>(checked.rows_checked));
    result.Set("badRow", static_cast<double>(checked.bad_row));
    result.Set("reason", checked.reason);
    return result;
  };
}

// verifyScreen(id, path, codesPath, {rows, dtype, segments}, dimension) → Promise<{rowsChecked, badRow, reason}>
Napi::Value verify_screen(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const std::string path = info[1].ToString().Utf8Value(), codes_path = info[2].ToString().Utf8Value();
    const auto rows = rows_of(info[3].As<Napi::Object>(), integer_of(info[4], "dimension"));
    return jobs_of(info.Env()).start(
        info.Env(), info[0].ToNumber().DoubleValue(), [=](const std::atomic<bool>& cancel) -> Deliver {
          const auto screen = trawl::ScreenFile::open(path);
          const auto codes = trawl::CodesFile::open(codes_path, trawl::CodesPlacement::kTouched);
          return deliver_checked(trawl::verify_screen(*screen, *codes, *rows, pool(), &cancel));
        });
  });
}

// verifyCodes(id, codesPath, {rows, dtype, segments}, dimension) → Promise<{rowsChecked, badRow, reason}>
Napi::Value verify_codes(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const std::string path = info[1].ToString().Utf8Value();
    const auto rows = rows_of(info[2].As<Napi::Object>(), integer_of(info[3], "dimension"));
    return jobs_of(info.Env()).start(
        info.Env(), info[0].ToNumber().DoubleValue(), [=](const std::atomic<bool>& cancel) -> Deliver {
          const auto codes = trawl::CodesFile::open(path);
          return deliver_checked(trawl::verify_codes(*codes, *rows, pool(), &cancel));
        });
  });
}

// firstNotHalf(values) → index of the first value that float16 does not hold exactly, or the length
Napi::Value first_not_half(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const auto values = info[0].As<Napi::Float32Array>();
    return Napi::Number::New(info.Env(), static_cast<double>(trawl::first_not_half(values.Data(), values.ElementLength())));
  });
}

// toHalves(values) → Uint16Array; every value has to be representable
Napi::Value to_halves(const Napi::CallbackInfo& info) {
  return guarded(info, [&]() -> Napi::Value {
    const auto values = info[0].As<Napi::Float32Array>();
    auto halves = Napi::Uint16Array::New(info.Env(), values.ElementLength());
    trawl::floats_to_halves(values.Data(), values.ElementLength(), halves.Data());
    return halves;
  });
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new AddonData(env));
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  add("isas", isas);
  add("selectIsa", select_isa);
  add("setThreads", set_threads);
  add("openIndex", open_index);
  add("indexFacts", index_facts);
  add("closeIndex", close_index);
  add("search", search);
  add("cancel", cancel);
  add("createCodes", create_codes);
  add("appendCodes", append_codes);
  add("finishCodes", finish_codes);
  add("closeCodes", close_codes);
  add("verifyCodes", verify_codes);
  add("makeScreen", make_screen);
  add("verifyScreen", verify_screen);
  add("firstNotHalf", first_not_half);
  add("toHalves", to_halves);
  return exports;
}

}  // namespace

NODE_API_MODULE(trawl, init)

}  // namespace trawl_addon
