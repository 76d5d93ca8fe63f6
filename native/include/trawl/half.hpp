// IEEE half precision. Conversion to float32 is exact, so float16 rows and the float32 rows they represent have the same scores,
// bit for bit.
#pragma once
#include <cstddef>
#include <cstdint>

namespace trawl {

float half_to_float(uint16_t half);          // exact for all 65,536 values
void halves_to_floats(const void* halves, size_t count, float* out_f32);  // unaligned input

// Index of the first value that float16 cannot represent exactly, or `count` if there is none. NaN is not representable; -0 and
// subnormal halves are.
size_t first_not_half(const float* values_f32, size_t count);

// Precondition: first_not_half(values, count) == count.
void floats_to_halves(const float* values_f32, size_t count, uint16_t* out);

}  // namespace trawl
