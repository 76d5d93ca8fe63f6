#include "errors.hpp"

#include <new>
#include <string>

#include "trawl/error.hpp"

namespace trawl_addon {

namespace {

Napi::Object make_error(Napi::Env env, const std::string& message, const char* code, int64_t item = -1, int64_t column = -1) {
  Napi::Error error = Napi::Error::New(env, message);
  Napi::Object object = error.Value().As<Napi::Object>();
  object.Set("code", Napi::String::New(env, code));
  object.Set("item", Napi::Number::New(env, static_cast<double>(item)));
  object.Set("column", Napi::Number::New(env, static_cast<double>(column)));
  return object;
}

}  // namespace

Napi::Value error_value(Napi::Env env, std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const trawl::Error& known) {
    Napi::Object object = make_error(env, known.what(), trawl::error_code_name(known.code), known.item, known.column);
    if (known.os_error != 0) {
      object.Set("errno", Napi::Number::New(env, known.os_error));
      object.Set("path", Napi::String::New(env, known.path));
    }
    return object;
  } catch (const Napi::Error& thrown) {
    return thrown.Value();
  } catch (const std::bad_alloc&) {
    return make_error(env, "The engine could not get the memory it needs.", "OUT_OF_MEMORY");
  } catch (const std::exception& other) {
    return make_error(env, other.what(), "INTERNAL");
  } catch (...) {
    return make_error(env, "The engine threw a value that is not a std::exception.", "INTERNAL");
  }
}

}  // namespace trawl_addon
