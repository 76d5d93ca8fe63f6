// Finds out which instruction sets the processor has.
#include "encoder/byte_products.hpp"
#include "encoder/product_check.hpp"
#include "encoder/products.hpp"
#include "trawl/bert_encoder.hpp"
#include "trawl/error.hpp"
#include "x86_features.hpp"

namespace trawl::encoder {

namespace {

template <typename Table>
struct Probe {
  IsaStatus status;
  const Table* products;
};
template <typename Table>
using Probes = std::vector<Probe<Table>>;

template <typename Table>
void add(Probes<Table>& found, const char* name, const Table* products, bool has, const char* having, const char* missing) {
  const bool available = products != nullptr && has;
  found.push_back({{name, available, available ? having : products == nullptr ? "not an x86-64 processor" : missing},
                   available ? products : nullptr});
}

struct Found {
  Probes<Products> halves;
  Probes<ByteProducts> bytes;
};

Found probe() {
  Found found;
#if defined(__x86_64__)
  const X86 cpu;
  const auto leaf7 = [&](int bit) { return (cpu.leaf7_ebx >> bit & 1) != 0; };
  const bool avx2 = leaf7(5) && cpu.os_saves(kYmmState);
  // F, DQ, BW and VL
  const bool avx512 = leaf7(16) && leaf7(17) && leaf7(30) && leaf7(31) && (cpu.leaf1_ecx >> 12 & 1) != 0 && cpu.os_saves(kZmmState);
  const bool bf16 = avx512 && (cpu.leaf7_1_eax >> 5 & 1) != 0;
  const bool vnni = avx512 && (cpu.leaf7_ecx >> 11 & 1) != 0;
#else
  const bool avx512 = false, bf16 = false, vnni = false, avx2 = false;
#endif
  const bool sums = bf16 && sums_as_defined(*kAvx512Bf16Products);
  add(found.halves, "avx512-bf16", kAvx512Bf16Products, sums, "vdpbf16ps, 32 products per instruction",
      bf16 ? "the vdpbf16ps of this processor sums in another order" : "the processor has no AVX-512 BF16");
  add(found.halves, "avx512", kAvx512Products, avx512, "vfmadd231ps, 16 products per instruction",
      "the processor has no AVX-512 BW, DQ and VL");
  add(found.halves, "avx2", kAvx2Products, avx2, "8 products in two instructions", "the processor has no AVX2");
  add(found.halves, "portable", kPortableProducts, true, "plain C++, the reference", "");
  add(found.bytes, "avx512-vnni", kAvx512VnniByteProducts, vnni, "vpdpbusd, 64 products per instruction",
      "the processor has no AVX-512 VNNI");
  add(found.bytes, "avx2", kAvx2ByteProducts, avx2, "vpmaddwd, 16 products per instruction", "the processor has no AVX2");
  add(found.bytes, "portable", kPortableByteProducts, true, "plain C++, the reference", "");
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
  return weights == WeightType::kInt8 ? statuses(probed().bytes) : statuses(probed().halves);
}

const Products& select_products(const std::string& name) { return selected(probed().halves, name); }
const ByteProducts& select_byte_products(const std::string& name) { return selected(probed().bytes, name); }

const Products& products_beside(const ByteProducts& bytes) {
  return select_products(&bytes == kAvx512VnniByteProducts ? "" : bytes.name);
}

}  // namespace trawl::encoder
