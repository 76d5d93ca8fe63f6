// IEEE half precision. Widening is exact, so scores from float16 rows have the bits of scores from float32 rows.
#pragma once
#include <cstddef>
#include <cstdint>

namespace trawl {

float half_to_float(uint16_t half);          // exact, for every one of the 65,536 values
void halves_to_floats(const void* halves, size_t count, float* out_f32);  // unaligned input

// Index of the first value that float16 cannot represent exactly (NaN counts as not representable, -0 and
// subnormal halves as representable), or count when all can.
size_t first_not_half(const float* values_f32, size_t count);

// Precondition: first_not_half(values, count) == count.
void floats_to_halves(const float* values_f32, size_t count, uint16_t* out);

}  // namespace trawl
