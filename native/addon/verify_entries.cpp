// Verifies codes and prefilters.
#include "base/unchanged.hpp"
#include "entries.hpp"
#include "environment.hpp"
#include "trawl/verify.hpp"

namespace trawl_addon {

namespace {

Deliver deliver(const trawl::VerifyResult& verified) {
  return [verified](Napi::Env env) {
    Napi::Object result = Napi::Object::New(env);
    result.Set("rowsChecked", static_cast<double>(verified.rows_checked));
    result.Set("badRow", static_cast<double>(verified.bad_row));
    result.Set("reason", verified.reason);
    return result;
  };
}

}  // namespace

Napi::Value verify_codes(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const std::string path = path_of(info[1], "codesPath");
  const RowsSpec rows = rows_of(info[2], dimension_of(info[3]));
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>& cancel) -> Deliver {
    const auto codes = trawl::CodesFile::open(path);
    const auto mapped = rows.map();
    const auto require_unchanged = [&] { codes->require_unchanged(), mapped->require_unchanged(); };
    return deliver(trawl::over_unchanged([&] { return trawl::verify_codes(*codes, *mapped, pool(), &cancel); }, require_unchanged));
  });
}

Napi::Value verify_prefilter(const Napi::CallbackInfo& info) {
  const int64_t id = integer_of(info[0], "id");
  const std::string path = path_of(info[1], "path"), codes_path = path_of(info[2], "codesPath");
  const RowsSpec rows = rows_of(info[3], dimension_of(info[4]));
  return jobs_of(info.Env()).start(info.Env(), id, [=](const std::atomic<bool>& cancel) -> Deliver {
    const auto prefilter = trawl::PrefilterFile::open(path);
    const auto codes = trawl::CodesFile::open(codes_path, trawl::CodesAccess::kSparse);
    const auto mapped = rows.map();
    const auto require_unchanged = [&] { prefilter->require_unchanged(), codes->require_unchanged(), mapped->require_unchanged(); };
    return deliver(
        trawl::over_unchanged([&] { return trawl::verify_prefilter(*prefilter, *codes, *mapped, pool(), &cancel); }, require_unchanged));
  });
}

}  // namespace trawl_addon
