// Encoders in bfloat16 and int8. An encoder runs on the calling thread, a worker thread of JavaScript; other threads help with a lone text.
#include "entries.hpp"
#include "environment.hpp"
#include "trawl/sizes.hpp"

namespace trawl_addon {

namespace {

constexpr int64_t kMaxValues = int64_t{1} << 30;  // 4 GiB in one result

Napi::Int32Array integers_of(const Napi::Value& value, const std::string& name, size_t count) {
  const bool fits = value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_int32_array &&
                    value.As<Napi::TypedArray>().ElementLength() == count;
  if (!fits) throw bad_argument(value, name, "an Int32Array of " + std::to_string(count) + " values");
  return value.As<Napi::Int32Array>();
}

trawl::encoder::WeightType weights_of(const Napi::Value& value) {
  const std::string name = string_of(value, "precision");
  if (name == "int8") return trawl::encoder::WeightType::kInt8;
  if (name == "bfloat16") return trawl::encoder::WeightType::kBfloat16;
  throw bad_argument(value, "precision", "bfloat16 or int8");
}

}  // namespace

Napi::Value encoder_isas(const Napi::CallbackInfo& info) {
  return statuses(info.Env(), trawl::encoder::list_products(weights_of(info[0])));
}

Napi::Value open_bert(const Napi::CallbackInfo& info) {
  const std::string path = path_of(info[0], "path"), isa = string_of(info[1], "isa");
  auto encoder = std::make_shared<trawl::encoder::BertEncoder>(path, isa);
  return make_handle<BertPointer>(info.Env(), std::move(encoder), kBertTag);
}

Napi::Value bert_facts(const Napi::CallbackInfo& info) {
  const trawl::encoder::BertEncoder& encoder = *handle_of<BertPointer>(info[0], kBertTag).object;
  Napi::Object facts = Napi::Object::New(info.Env());
  facts.Set("hidden", encoder.shape().hidden);
  facts.Set("isa", encoder.isa());
  facts.Set("precision", encoder.weights() == trawl::encoder::WeightType::kInt8 ? "int8" : "bfloat16");
  return facts;
}

Napi::Value run_bert(const Napi::CallbackInfo& info) {
  trawl::encoder::BertEncoder& encoder = *handle_of<BertPointer>(info[0], kBertTag).object;
  const Napi::Object batch = object_of(info[1], "batch");
  const int64_t texts = integer_of(batch.Get("texts"), "texts", 1, 1 << 20), length = integer_of(batch.Get("length"), "length", 1, 1 << 20);
  const int64_t threads = integer_of(batch.Get("threads"), "threads", 1, trawl::ThreadPool::kMaxThreads);
  const int64_t tokens = texts * length;
  const Napi::Int32Array ids = integers_of(batch.Get("ids"), "ids", static_cast<size_t>(tokens));
  const bool typed = !batch.Get("types").IsUndefined();
  Napi::Int32Array types;
  if (typed) types = integers_of(batch.Get("types"), "types", static_cast<size_t>(tokens));
  const int64_t values = trawl::checked_product(tokens, encoder.shape().hidden, kMaxValues, "the values of the texts");
  auto hidden = Napi::Float32Array::New(info.Env(), static_cast<size_t>(values));
  encoder.run(ids.Data(), typed ? types.Data() : nullptr, texts, length, hidden.Data(), threads);
  return hidden;
}

Napi::Value close_bert(const Napi::CallbackInfo& info) {
  handle_of<BertPointer>(info[0], kBertTag).object.reset();
  return info.Env().Undefined();
}

}  // namespace trawl_addon
