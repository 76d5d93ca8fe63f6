// Compares this processor's tdpbf16ps, bit by bit, with several orders of its sums on random data, and prints one JSON object for each kind
// of data: the share of sums that each order gives exactly. `manual` is what test/amx_emulation.hpp does.
#include <immintrin.h>

#include <cstdio>
#include <random>
#include <vector>

#include "amx_emulation.hpp"
#include "encoder/products.hpp"
#include "trawl/bert_encoder.hpp"
#include "x86_features.hpp"

namespace {

using trawl::encoder::from_bf16;

struct alignas(64) Config {
  uint8_t palette, start_row, reserved[14];
  uint16_t column_bytes[16];
  uint8_t rows[16];
};

__attribute__((target("amx-tile,amx-bf16"))) void multiply(const uint16_t* a, const uint16_t* b, float* c) {
  Config config = {};
  config.palette = 1;
  for (int tile = 0; tile < 3; ++tile) config.column_bytes[tile] = 64, config.rows[tile] = 16;
  __asm__ volatile("" : : "r"(&config), "r"(a), "r"(b), "r"(c) : "memory");
  _tile_loadconfig(&config);
  _tile_loadd(0, c, 64);
  _tile_loadd(1, a, 64);
  _tile_loadd(2, b, 64);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, c, 64);
  _tile_release();
}

// The sum of c and the products of 32 values.
struct Order {
  const char* name;
  float (*sum)(const float* a, const float* b, float c);
};
float flush(float value) { return amx_emulation::flushed(value); }
float fma(float a, float b, float c) { return std::fma(a, b, c); }
float flushed_fma(float a, float b, float c) { return flush(std::fma(flush(a), flush(b), flush(c))); }

const Order kOrders[] = {
    {"manual",
     [](const float* a, const float* b, float c) {
       float even = 0, odd = 0;
       for (int k = 0; k < 32; k += 2) even = flushed_fma(a[k], b[k], even), odd = flushed_fma(a[k + 1], b[k + 1], odd);
       return flush(flush(c) + flush(even + odd));
     }},
    {"manual_with_subnormals",
     [](const float* a, const float* b, float c) {
       float even = 0, odd = 0;
       for (int k = 0; k < 32; k += 2) even = fma(a[k], b[k], even), odd = fma(a[k + 1], b[k + 1], odd);
       return c + (even + odd);
     }},
    {"even_then_odd_added",
     [](const float* a, const float* b, float c) {
       float even = 0, odd = 0;
       for (int k = 0; k < 32; k += 2) even = flushed_fma(a[k], b[k], even), odd = flushed_fma(a[k + 1], b[k + 1], odd);
       return flush(flush(flush(c) + even) + odd);
     }},
    {"even_from_sum",
     [](const float* a, const float* b, float c) {
       float even = c, odd = 0;
       for (int k = 0; k < 32; k += 2) even = flushed_fma(a[k], b[k], even), odd = flushed_fma(a[k + 1], b[k + 1], odd);
       return flush(even + odd);
     }},
    {"as_vdpbf16ps",
     [](const float* a, const float* b, float c) {
       for (int k = 0; k < 32; k += 2) c = flushed_fma(a[k], b[k], flushed_fma(a[k + 1], b[k + 1], c));
       return c;
     }},
    {"even_first",
     [](const float* a, const float* b, float c) {
       for (int k = 0; k < 32; k += 2) c = flushed_fma(a[k + 1], b[k + 1], flushed_fma(a[k], b[k], c));
       return c;
     }},
    {"pairs_rounded_once",
     [](const float* a, const float* b, float c) {
       for (int k = 0; k < 32; k += 2) {
         c = flush(static_cast<float>(c + (static_cast<double>(flush(a[k])) * flush(b[k]) + static_cast<double>(flush(a[k + 1])) * flush(b[k + 1]))));
       }
       return c;
     }},
    {"rounded_once",
     [](const float* a, const float* b, float c) {
       double sum = flush(c);
       for (int k = 0; k < 32; ++k) sum += static_cast<double>(flush(a[k])) * flush(b[k]);
       return flush(static_cast<float>(sum));
     }},
};

struct Kind {
  const char* name;
  int low, high, sum_low, sum_high;  // exponents of the factors and of the sums before
  int share_subnormal;               // percent of the factors
};
const Kind kKinds[] = {{"like weights", -6, 2, -4, 4, 0},
                       {"wide", -12, 12, -20, 20, 0},
                       {"very wide", -40, 40, -60, 60, 0},
                       {"subnormal factors", -126, -100, -126, -100, 30},
                       {"some subnormal factors", -6, 2, -4, 4, 30},
                       {"subnormal products", -70, -60, -126, -120, 0},
                       {"subnormal sums", -65, -60, -149, -120, 0},
                       {"overflow", 55, 64, 120, 127, 0}};

bool same(float a, float b) { return std::memcmp(&a, &b, 4) == 0 || (a != a && b != b); }

}  // namespace

int main() {
  for (const trawl::IsaStatus& isa : trawl::encoder::list_products()) std::printf("{\"isa\":\"%s\",\"available\":%d,\"reason\":\"%s\"}\n", isa.name.c_str(), isa.available, isa.reason.c_str());
  const trawl::X86 cpu;
  if (!(cpu.leaf7_edx >> 22 & 1) || !(cpu.leaf7_edx >> 24 & 1) || !trawl::request_tiles()) {
    std::printf("{\"error\":\"no AMX tiles of bfloat16\"}\n");
    return 1;
  }
  std::mt19937 random(1);
  for (const Kind& kind : kKinds) {
    constexpr int kOrdersCount = sizeof kOrders / sizeof *kOrders;
    int64_t right[kOrdersCount] = {}, sums = 0;
    char first[200] = "";
    const auto value = [&](int low, int high) {
      const float size = std::ldexp(1.0f + static_cast<float>(random() % 128) / 128, low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
      return random() % 2 ? size : -size;
    };
    for (int round = 0; round < 60; ++round) {
      alignas(64) uint16_t a[16 * 32], b[16 * 32];
      alignas(64) float c[256], before[256];
      for (uint16_t* values : {a, b}) {
        for (int i = 0; i < 512; ++i) {
          const float v = value(kind.low, kind.high);
          uint32_t bits;
          std::memcpy(&bits, &v, 4);
          values[i] = static_cast<uint16_t>(bits >> 16);
          if (static_cast<int>(random() % 100) < kind.share_subnormal) values[i] = static_cast<uint16_t>((values[i] & 0x8000) | random() % 128);
        }
      }
      for (float& v : c) v = round % 2 ? value(kind.sum_low, kind.sum_high) * (1 + static_cast<float>(random() % 65536) * 0x1p-23f) : 0;
      std::memcpy(before, c, sizeof c);
      multiply(a, b, c);
      for (int m = 0; m < 16; ++m) {
        for (int n = 0; n < 16; ++n, ++sums) {
          float left[32], column[32];
          for (int k = 0; k < 32; ++k) left[k] = from_bf16(a[m * 32 + k]), column[k] = from_bf16(b[k / 2 * 32 + 2 * n + k % 2]);
          for (int order = 0; order < kOrdersCount; ++order) {
            const float expected = kOrders[order].sum(left, column, before[m * 16 + n]);
            const bool is_same = same(expected, c[m * 16 + n]);
            right[order] += is_same;
            if (order == 0 && !is_same && first[0] == 0) std::snprintf(first, sizeof first, "%a, manual %a, before %a", c[m * 16 + n], expected, before[m * 16 + n]);
          }
        }
      }
    }
    std::printf("{\"data\":\"%s\",\"sums\":%lld", kind.name, (long long)sums);
    for (int order = 0; order < kOrdersCount; ++order) std::printf(",\"%s\":%.5f", kOrders[order].name, static_cast<double>(right[order]) / static_cast<double>(sums));
    std::printf(",\"first_difference\":\"%s\"}\n", first);
  }
}
