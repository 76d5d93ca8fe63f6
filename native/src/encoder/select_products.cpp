// Finds out which instruction sets the processor has.
#include "encoder/product_check.hpp"
#include "encoder/products.hpp"
#include "trawl/bert_encoder.hpp"
#include "trawl/error.hpp"
#include "x86_features.hpp"

namespace trawl::encoder {

namespace {

struct Probe {
  IsaStatus status;
  const Products* products;
};

std::vector<Probe> probe() {
  std::vector<Probe> found;
  const auto add = [&](const char* name, const Products* products, bool has, const char* having, const char* missing) {
    const bool available = products != nullptr && has;
    found.push_back({{name, available, available ? having : products == nullptr ? "not an x86-64 processor" : missing},
                     available ? products : nullptr});
  };
#if defined(__x86_64__)
  const X86 cpu;
  const auto leaf7 = [&](int bit) { return (cpu.leaf7_ebx >> bit & 1) != 0; };
  const bool avx2 = leaf7(5) && cpu.os_saves(kYmmState);
  // F, DQ, BW and VL
  const bool avx512 = leaf7(16) && leaf7(17) && leaf7(30) && leaf7(31) && (cpu.leaf1_ecx >> 12 & 1) != 0 && cpu.os_saves(kZmmState);
  const bool bf16 = avx512 && (cpu.leaf7_1_eax >> 5 & 1) != 0;
#else
  const bool avx512 = false, bf16 = false, avx2 = false;
#endif
  const bool sums = bf16 && sums_as_defined(*kAvx512Bf16Products);
  add("avx512-bf16", kAvx512Bf16Products, sums, "vdpbf16ps, 32 products per instruction",
      bf16 ? "the vdpbf16ps of this processor sums in another order" : "the processor has no AVX-512 BF16");
  add("avx512", kAvx512Products, avx512, "vfmadd231ps, 16 products per instruction", "the processor has no AVX-512 BW, DQ and VL");
  add("avx2", kAvx2Products, avx2, "8 products in two instructions", "the processor has no AVX2");
  add("portable", kPortableProducts, true, "plain C++, the reference", "");
  return found;
}

const std::vector<Probe>& probed() {
  static const std::vector<Probe> once = probe();
  return once;
}

}  // namespace

std::vector<IsaStatus> list_products() {
  std::vector<IsaStatus> list;
  for (const Probe& one : probed()) list.push_back(one.status);
  return list;
}

const Products& select_products(const std::string& name) {
  std::string available;
  for (const Probe& one : probed()) {
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

const char* products_name(const Products& products) { return products.name; }

}  // namespace trawl::encoder
