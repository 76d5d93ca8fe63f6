// Finds out which instruction sets the processor has.
#include <algorithm>

#include "base/x86_features.hpp"
#include "encoder/byte_choice.hpp"
#include "encoder/product_check.hpp"
#include "encoder/products.hpp"
#include "trawl/bert_encoder.hpp"
#include "trawl/error.hpp"

namespace trawl::encoder {

namespace {

template <typename Table>
struct Probe {
  IsaStatus status;
  const Table* products;
};
template <typename Table>
using Probes = std::vector<Probe<Table>>;

// missing: what the machine lacks; empty if nothing.
template <typename Table>
void add(Probes<Table>& found, const char* name, const Table* products, const char* having, const std::string& missing) {
  const bool available = products != nullptr && missing.empty();
  found.push_back({{name, available,
                    available             ? having
                    : products == nullptr ? "not an x86-64 processor"
                                          : missing},
                   available ? products : nullptr});
}

struct Found {
  Probes<Products> bf16;
  Probes<ByteProducts> bytes;
};

Found probe() {
  Found found;
  std::string bf16, avx512, avx2, vnni, amx;
#if defined(__x86_64__)
  const X86 cpu;
  avx2 = missing_avx2(cpu);
  avx512 = missing_avx512(cpu);
  bf16 = missing_avx512_bf16(cpu);
  if (bf16.empty() && !sums_as_defined(*kAvx512Bf16Products)) bf16 = "the vdpbf16ps of this processor sums in another order";
  vnni = missing_vnni(cpu);
  amx = missing_amx(cpu);
  if (amx.empty() && !sums_as_defined(*kAmxByteProducts)) amx = "the tdpbusd of this processor gives other sums";
#endif
  add(found.bf16, "avx512-bf16", kAvx512Bf16Products, "vdpbf16ps, 32 products per instruction", bf16);
  add(found.bf16, "avx512", kAvx512Products, "vfmadd231ps, 16 products per instruction", avx512);
  add(found.bf16, "avx2", kAvx2Products, "8 products in two instructions", avx2);
  add(found.bf16, "portable", kPortableProducts, "plain C++, the reference", "");
  add(found.bytes, "amx", kAmxByteProducts, "tdpbusd, 16,384 products per instruction", amx);
  add(found.bytes, "avx512-vnni", kAvx512VnniByteProducts, "vpdpbusd, 64 products per instruction", vnni);
  add(found.bytes, "avx2", kAvx2ByteProducts, "vpmaddwd, 16 products per instruction", avx2);
  add(found.bytes, "portable", kPortableByteProducts, "plain C++, the reference", "");
  return found;
}

const Found& probed() {
  static const Found once = probe();
  return once;
}

template <typename Table>
std::vector<IsaStatus> statuses(const Probes<Table>& probes) {
  std::vector<IsaStatus> list;
  for (const auto& one : probes) list.push_back(one.status);
  return list;
}

template <typename Table>
const Table& selected(const Probes<Table>& probes, const std::string& name) {
  std::string available;
  for (const auto& one : probes) {
    if (one.products == nullptr) {
      if (one.status.name == name) {
        throw Error(ErrorCode::kIsaUnavailable, "instruction set '" + name + "': " + one.status.reason);
      }
      continue;
    }
    if (name.empty() || one.status.name == name) return *one.products;
    available += (available.empty() ? "" : ", ") + one.status.name;
  }
  throw Error(ErrorCode::kIsaUnavailable, "instruction set '" + name + "' is unknown; available on this machine: " + available);
}

}  // namespace

std::vector<IsaStatus> list_products(WeightType weights) {
  return weights == WeightType::kInt8 ? statuses(probed().bytes) : statuses(probed().bf16);
}

const Products& select_products(const std::string& name) { return selected(probed().bf16, name); }
const ByteProducts& select_byte_products(const std::string& name) { return selected(probed().bytes, name); }

const ByteChoice& choose_byte_products(const std::string& name) {
  const ByteProducts& named = select_byte_products(name);
  // Every machine with AMX has AVX-512 VNNI (missing_amx).
  if (name.empty() && &named == kAmxByteProducts) {
    static const ByteChoice timed = time_products(*kAvx512VnniByteProducts, *kAmxByteProducts);
    return timed;
  }
  static const std::vector<ByteChoice> alone = [] {
    std::vector<ByteChoice> list;
    for (const auto& one : probed().bytes) list.push_back({one.products, one.products, 0});
    return list;
  }();
  return *std::find_if(alone.begin(), alone.end(), [&](const ByteChoice& one) { return one.large_batch == &named; });
}

const Products& products_beside(const ByteProducts& bytes) {
  const std::string name = bytes.name;
  return select_products(name == "amx" || name == "avx512-vnni" ? "" : name);
}

}  // namespace trawl::encoder
