// Errors between C++ and JavaScript.
#pragma once
#include <napi.h>

#include <exception>

namespace trawl_addon {

// Converts a C++ exception to a JavaScript error with the fields message, code (the engine's name of the error), item and column
// (-1 if unknown). If a system call failed, it also has errno (above 0) and path.
Napi::Value error_value(Napi::Env env, std::exception_ptr error);

// Wraps an exported function so that its C++ exceptions become JavaScript errors. Every exported function needs it, because any
// exception other than Napi::Error would end the process.
template <Napi::Value (*entry)(const Napi::CallbackInfo&)>
Napi::Value guarded(const Napi::CallbackInfo& info) {
  try {
    return entry(info);
  } catch (const Napi::Error&) {
    throw;
  } catch (...) {
    throw Napi::Error(info.Env(), error_value(info.Env(), std::current_exception()));
  }
}

}  // namespace trawl_addon
