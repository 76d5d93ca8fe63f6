// Registers the addon's functions, and implements those for the whole engine: instruction sets, threads, cancel, float16.
#include "entries.hpp"
#include "environment.hpp"
#include "errors.hpp"
#include "trawl/f16.hpp"
#include "trawl/isa.hpp"
#include "trawl/peaks.hpp"

namespace trawl_addon {

Napi::Array statuses(Napi::Env env, const std::vector<trawl::IsaStatus>& known) {
  Napi::Array list = Napi::Array::New(env, known.size());
  for (size_t i = 0; i < known.size(); ++i) {
    Napi::Object isa = Napi::Object::New(env);
    isa.Set("name", known[i].name);
    isa.Set("available", known[i].available);
    isa.Set("reason", known[i].reason);
    list.Set(static_cast<uint32_t>(i), isa);
  }
  return list;
}

Napi::Value isas(const Napi::CallbackInfo& info) { return statuses(info.Env(), trawl::list_isas()); }

Napi::Value select_isa(const Napi::CallbackInfo& info) {
  const std::string name = string_of(info[0], "name");
  return Napi::String::New(info.Env(), trawl::kernels_name(trawl::select_kernels(name)));
}

Napi::Value chosen_isas(const Napi::CallbackInfo& info) {
  const trawl::ChosenIsas chosen = trawl::chosen_isas(string_of(info[0], "name"));
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("few", chosen.small_batch);
  result.Set("many", chosen.large_batch);
  result.Set("codesFrom", static_cast<double>(chosen.codes_from));
  result.Set("prefiltersFrom", static_cast<double>(chosen.prefilters_from));
  return result;
}

Napi::Value threads(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), static_cast<double>(pool_threads())); }

Napi::Value set_threads(const Napi::CallbackInfo& info) {
  set_pool_threads(integer_of(info[0], "threads", 1, trawl::ThreadPool::kMaxThreads));
  return threads(info);
}

// Far beyond any cache.
constexpr int64_t kMaxPeakBytes = int64_t{1} << 34;

Napi::Value measure_peaks(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id"), bytes = integer_of(info[1], "bytes", 1 << 20, kMaxPeakBytes);
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>& cancel) -> Deliver {
    const trawl::Peaks peaks = trawl::measure_peaks(pool(), bytes, &cancel);
    return [peaks](Napi::Env env) {
      Napi::Object result = Napi::Object::New(env);
      result.Set("readBytesPerS", peaks.read_bytes_per_s);
      result.Set("int8ProductsPerS", peaks.int8_products_per_s);
      result.Set("float32ProductsPerS", peaks.float32_products_per_s);
      result.Set("int8Isa", peaks.int8_isa);
      return result;
    };
  });
}

Napi::Value cancel(const Napi::CallbackInfo& info) {
  jobs_of(info.Env()).cancel(integer_of(info[0], "id"));
  return info.Env().Undefined();
}

Napi::Value watch_file(const Napi::CallbackInfo& info) {
  return make_handle<WatchPointer>(info.Env(), trawl::WatchedFile::of_library(path_of(info[0], "path")), kWatchTag);
}

Napi::Value require_unchanged(const Napi::CallbackInfo& info) {
  handle_of<WatchPointer>(info[0], kWatchTag).object->require_unchanged();
  return info.Env().Undefined();
}

Napi::Value close_watch(const Napi::CallbackInfo& info) {
  handle_of<WatchPointer>(info[0], kWatchTag).object.reset();
  return info.Env().Undefined();
}

Napi::Value first_not_f16(const Napi::CallbackInfo& info) {
  const Napi::Float32Array values = floats_of(info[0], "values");
  const size_t index = trawl::first_not_f16(values.Data(), values.ElementLength());
  return Napi::Number::New(info.Env(), static_cast<double>(index));
}

Napi::Value to_f16(const Napi::CallbackInfo& info) {
  const Napi::Float32Array values = floats_of(info[0], "values");
  const size_t count = values.ElementLength(), wrong = trawl::first_not_f16(values.Data(), count);
  if (wrong < count) throw bad_argument(values.Get(static_cast<uint32_t>(wrong)), "each value", "a float16");
  auto halves = Napi::Uint16Array::New(info.Env(), count);
  trawl::f32_to_f16_array(values.Data(), count, halves.Data());
  return halves;
}

namespace {

template <Napi::Value (*entry)(const Napi::CallbackInfo&)>
void add(Napi::Object exports, const char* name) {
  exports.Set(name, Napi::Function::New(exports.Env(), guarded<entry>, name));
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Jobs(env));
  add<isas>(exports, "isas");
  add<select_isa>(exports, "selectIsa");
  add<chosen_isas>(exports, "chosenIsas");
  add<threads>(exports, "threads");
  add<set_threads>(exports, "setThreads");
  add<measure_peaks>(exports, "measurePeaks");
  add<cancel>(exports, "cancel");
  add<open_index>(exports, "openIndex");
  add<index_facts>(exports, "indexFacts");
  add<close_index>(exports, "closeIndex");
  add<upload_index>(exports, "uploadIndex");
  add<gpus>(exports, "gpus");
  add<search>(exports, "search");
  add<create_codes>(exports, "createCodes");
  add<append_codes>(exports, "appendCodes");
  add<finish_codes>(exports, "finishCodes");
  add<close_codes>(exports, "closeCodes");
  add<make_prefilter>(exports, "makePrefilter");
  add<verify_codes>(exports, "verifyCodes");
  add<verify_prefilter>(exports, "verifyPrefilter");
  add<analyse>(exports, "analyse");
  add<open_lexical>(exports, "openLexical");
  add<lexical_facts>(exports, "lexicalFacts");
  add<close_lexical>(exports, "closeLexical");
  add<search_lexical>(exports, "searchLexical");
  add<search_lexical_fields>(exports, "searchLexicalFields");
  add<explain_lexical>(exports, "explainLexical");
  add<create_lexical>(exports, "createLexical");
  add<append_lexical>(exports, "appendLexical");
  add<finish_lexical>(exports, "finishLexical");
  add<close_lexical_writer>(exports, "closeLexicalWriter");
  add<verify_lexical>(exports, "verifyLexical");
  add<open_column>(exports, "openColumn");
  add<close_column>(exports, "closeColumn");
  add<filter_rows>(exports, "filterRows");
  add<encoder_isas>(exports, "encoderIsas");
  add<open_bert>(exports, "openBert");
  add<bert_facts>(exports, "bertFacts");
  add<run_bert>(exports, "runBert");
  add<close_bert>(exports, "closeBert");
  add<watch_file>(exports, "watchFile");
  add<require_unchanged>(exports, "requireUnchanged");
  add<close_watch>(exports, "closeWatch");
  add<first_not_f16>(exports, "firstNotHalf");
  add<to_f16>(exports, "toHalves");
  return exports;
}

}  // namespace

NODE_API_MODULE(trawl, init)

}  // namespace trawl_addon
