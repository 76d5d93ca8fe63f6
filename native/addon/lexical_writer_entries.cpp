// Writes inverted indexes.
#include "entries.hpp"
#include "environment.hpp"
#include "lexical_arguments.hpp"

namespace trawl_addon {

Napi::Value create_lexical(const Napi::CallbackInfo& info) {
  const std::string path = path_of(info[0], "path");
  return make_handle<LexicalWriterPointer>(info.Env(), std::make_shared<LexicalWriter>(path, analyser_of(info[1])), kLexicalWriterTag);
}

Napi::Value append_lexical(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const auto writer = claim_writer(info[1], lexical_writer_handle_of(info[1]));
  const Napi::Uint8Array bytes = bytes_of(info[2], "texts");
  const Napi::Float64Array list = doubles_of(info[3], "ends");
  auto texts = std::make_shared<std::string>(reinterpret_cast<const char*>(bytes.Data()), bytes.ElementLength());
  auto ends = std::make_shared<std::vector<uint64_t>>();
  int64_t end = 0;
  for (size_t i = 0; i < list.ElementLength(); i++) {
    end = integer_of(list.Get(static_cast<uint32_t>(i)), "end", end, static_cast<int64_t>(texts->size()));
    ends->push_back(static_cast<uint64_t>(end));
  }
  if (static_cast<size_t>(end) != texts->size()) throw bad_argument(list, "ends", "up to the end of the texts");
  const auto work = [=](const std::atomic<bool>& cancel) -> Deliver {
    writer->builder.add(texts->data(), ends->data(), ends->size(), &cancel);
    writer->rows += ends->size();
    const auto total = static_cast<double>(writer->rows);
    return [total](Napi::Env env) { return Napi::Number::New(env, total); };
  };
  return jobs_of(info.Env()).start(info.Env(), id, work, writer);
}

Napi::Value finish_lexical(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const auto writer = claim_writer(info[1], lexical_writer_handle_of(info[1]));
  const auto work = [=](const std::atomic<bool>& cancel) -> Deliver {
    const trawl::lexical::LexicalBuildSummary made = writer->builder.finish(&cancel);
    return [made](Napi::Env env) {
      Napi::Object result = Napi::Object::New(env);
      result.Set("rows", static_cast<double>(made.rows));
      result.Set("documents", static_cast<double>(made.documents));
      result.Set("tokens", static_cast<double>(made.tokens));
      result.Set("terms", static_cast<double>(made.terms));
      result.Set("postings", static_cast<double>(made.postings));
      return result;
    };
  };
  return jobs_of(info.Env()).start(info.Env(), id, work, writer);
}

Napi::Value close_lexical_writer(const Napi::CallbackInfo& info) {
  lexical_writer_handle_of(info[0]).object.reset();
  return info.Env().Undefined();
}

}  // namespace trawl_addon
