// IEEE binary16 (float16). Conversion to float32 is exact, so float16 rows and the float32 rows they represent have the same scores,
// bit for bit.
#pragma once
#include <cstddef>
#include <cstdint>

namespace trawl {

float f16_to_f32(uint16_t f16);                                         // exact for all 65,536 values
void f16_to_f32_array(const void* f16s, size_t count, float* out_f32);  // unaligned input

// Index of the first value that float16 cannot represent exactly, or `count` if there is none. NaN is not representable; -0 and
// subnormal values are.
size_t first_not_f16(const float* values_f32, size_t count);

// Precondition: first_not_f16(values, count) == count.
void f32_to_f16_array(const float* values_f32, size_t count, uint16_t* out);

}  // namespace trawl
