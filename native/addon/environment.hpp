// The jobs of a JavaScript environment, the thread pool of the process, and the handles of indexes and writers.
#pragma once
#include <napi.h>

#include <atomic>
#include <memory>
#include <utility>

#include "arguments.hpp"
#include "base/mapped_file.hpp"
#include "jobs.hpp"
#include "trawl/bert_encoder.hpp"
#include "trawl/codes_file.hpp"
#include "trawl/columns.hpp"
#include "trawl/gpu_codes.hpp"
#include "trawl/index.hpp"
#include "trawl/lexical_builder.hpp"
#include "trawl/lexical_index.hpp"
#include "trawl/thread_pool.hpp"

namespace trawl_addon {

Jobs& jobs_of(Napi::Env env);
// [{name, available, reason}]
Napi::Array statuses(Napi::Env env, const std::vector<trawl::IsaStatus>& known);

// The thread pool of the process. All environments share it, because the threads of several pools would compete for the same
// cores. Throws kBadArgument before set_pool_threads() was called.
trawl::ThreadPool& pool();
void set_pool_threads(int64_t threads);
int64_t pool_threads();  // 0 before set_pool_threads() was called

struct OpenIndex : trawl::Index {
  using trawl::Index::Index;
  std::unique_ptr<trawl::GpuCodes> gpu;  // null: searches run on the CPU. Set once, before the first search
};
using IndexPointer = std::shared_ptr<OpenIndex>;

struct Writer {
  trawl::CodesWriter codes;
  std::atomic<bool> busy{false};  // while a call runs
};
using WriterPointer = std::shared_ptr<Writer>;

struct LexicalHolder {
  trawl::lexical::LexicalIndex index;
  std::vector<uint64_t> live_rows;  // words of the bitmap; empty: all rows
};
using LexicalPointer = std::shared_ptr<const LexicalHolder>;

struct LexicalWriter {
  LexicalWriter(std::string path, trawl::lexical::Analyser analyser) : builder(std::move(path), analyser, pool()) {}
  trawl::lexical::LexicalBuilder builder;
  uint64_t rows = 0;
  std::atomic<bool> busy{false};  // while a call runs
};
using LexicalWriterPointer = std::shared_ptr<LexicalWriter>;

using ColumnPointer = std::shared_ptr<const trawl::Column>;

using WatchPointer = std::shared_ptr<const trawl::WatchedFile>;

using BertPointer = std::shared_ptr<trawl::encoder::BertEncoder>;

// A JavaScript external value that holds a pointer. The object is freed once no job uses it and JavaScript has closed the
// handle or no longer refers to it.
template <typename T>
struct Handle {
  T object;
};

constexpr napi_type_tag kIndexTag = {0x7472617769647831, 1};
constexpr napi_type_tag kWriterTag = {0x7472617777727431, 1};
constexpr napi_type_tag kLexicalTag = {0x747261776c657831, 1};
constexpr napi_type_tag kColumnTag = {0x74726177636f6c31, 1};
constexpr napi_type_tag kWatchTag = {0x7472617777617463, 1};
constexpr napi_type_tag kBertTag = {0x7472617762657274, 1};
constexpr napi_type_tag kLexicalWriterTag = {0x747261776c777231, 1};

template <typename T>
Napi::Value make_handle(Napi::Env env, T object, const napi_type_tag& tag) {
  auto external =
      Napi::External<Handle<T>>::New(env, new Handle<T>{std::move(object)}, [](Napi::Env, Handle<T>* handle) { delete handle; });
  external.TypeTag(&tag);
  return external;
}

// The result of a job that opened `object`.
template <typename T>
Deliver deliver_handle(T object, const napi_type_tag& tag) {
  return [object = std::move(object), &tag](Napi::Env env) { return make_handle<T>(env, object, tag); };
}

// T must be the type of the handles with this tag.
template <typename T>
Handle<T>& handle_of(const Napi::Value& value, const napi_type_tag& tag) {
  if (!value.IsExternal() || !value.As<Napi::External<Handle<T>>>().CheckTypeTag(&tag)) {
    throw bad_argument(value, "the handle", "a handle of this type of object");
  }
  Handle<T>& handle = *value.As<Napi::External<Handle<T>>>().Data();
  if (!handle.object) throw bad_argument(value, "the handle", "an open handle (this one was closed)");
  return handle;
}

inline Handle<IndexPointer>& index_handle_of(const Napi::Value& value) { return handle_of<IndexPointer>(value, kIndexTag); }
inline Handle<WriterPointer>& writer_handle_of(const Napi::Value& value) { return handle_of<WriterPointer>(value, kWriterTag); }
inline Handle<LexicalPointer>& lexical_handle_of(const Napi::Value& value) { return handle_of<LexicalPointer>(value, kLexicalTag); }
inline Handle<LexicalWriterPointer>& lexical_writer_handle_of(const Napi::Value& value) {
  return handle_of<LexicalWriterPointer>(value, kLexicalWriterTag);
}

// Marks the handle's writer as busy until the last copy of the result is gone, because only one thread may use a writer. A copy
// given to Jobs::start as `held` keeps it busy until the promise is settled, however early the work ends.
template <typename T>
std::shared_ptr<T> claim_writer(const Napi::Value& value, const Handle<std::shared_ptr<T>>& handle) {
  const std::shared_ptr<T> writer = handle.object;
  if (writer->busy.exchange(true)) throw bad_argument(value, "the writer", "idle (await its last call first)");
  return {writer.get(), [writer](T* claimed) { claimed->busy = false; }};
}

}  // namespace trawl_addon
