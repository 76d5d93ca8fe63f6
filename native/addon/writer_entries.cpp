// Writes codes and prefilters.
#include "entries.hpp"
#include "environment.hpp"

namespace trawl_addon {

Napi::Value create_codes(const Napi::CallbackInfo& info) {
  const std::string path = path_of(info[0], "path");
  const trawl::Metric metric = metric_of(info[1]);
  const int64_t dimension = dimension_of(info[2]);
  WriterPointer writer(new Writer{{path, metric, dimension}});
  return make_handle<WriterPointer>(info.Env(), std::move(writer), kWriterTag);
}

Napi::Value append_codes(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const std::shared_ptr<Writer> writer = claim_writer(info[1], writer_handle_of(info[1]));
  const Napi::Float32Array values = floats_of(info[2], "rows");
  const int64_t count = integer_of(info[3], "count");
  const auto length = static_cast<int64_t>(values.ElementLength());
  if (length % writer->codes.dimension() != 0 || length / writer->codes.dimension() != count) {
    throw bad_argument(values, "rows", "count x dimension values (" + std::to_string(length) + " given)");
  }
  auto rows = std::make_shared<std::vector<float>>(values.Data(), values.Data() + length);
  const auto work = [=](const std::atomic<bool>&) -> Deliver {
    writer->codes.append(rows->data(), count, pool());
    const auto total = static_cast<double>(writer->codes.rows());
    return [total](Napi::Env env) { return Napi::Number::New(env, total); };
  };
  return jobs_of(info.Env()).start(info.Env(), id, work, writer);
}

Napi::Value finish_codes(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const std::shared_ptr<Writer> writer = claim_writer(info[1], writer_handle_of(info[1]));
  const auto work = [=](const std::atomic<bool>&) -> Deliver {
    writer->codes.finish(pool());
    const auto total = static_cast<double>(writer->codes.rows());
    return [total](Napi::Env env) { return Napi::Number::New(env, total); };
  };
  return jobs_of(info.Env()).start(info.Env(), id, work, writer);
}

Napi::Value close_codes(const Napi::CallbackInfo& info) {
  writer_handle_of(info[0]).object.reset();
  return info.Env().Undefined();
}

Napi::Value make_prefilter(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const std::string path = path_of(info[1], "path"), codes_path = path_of(info[2], "codesPath");
  const RowsSpec rows = rows_of(info[3], dimension_of(info[4]));
  trawl::PrefilterOptions options;
  options.components = integer_of(info[5], "components");
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>& cancel) -> Deliver {
    const auto codes = trawl::CodesFile::open(codes_path, trawl::CodesAccess::kSparse);
    const trawl::PrefilterResult made = trawl::make_prefilter(path, *codes, *rows.map(), options, pool(), &cancel);
    return [made](Napi::Env env) {
      Napi::Object result = Napi::Object::New(env);
      result.Set("components", static_cast<double>(made.components));
      result.Set("reason", made.reason);
      return result;
    };
  });
}

}  // namespace trawl_addon
