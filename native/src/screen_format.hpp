// What the reader and the maker of screen files both need to know about a header.
#pragma once
#include <string>
#include <vector>

#include "trawl/screen_file.hpp"

namespace trawl {

uint64_t screen_header_bytes(int64_t dimension, int64_t directions);
uint64_t screen_header_checksum(ScreenHeader header, const std::vector<float>& basis_f32);
ScreenHeader make_screen_header(const CodesFile& codes, int64_t directions, double defect, const std::vector<float>& basis_f32);
uint64_t screen_block_checksum(const uint8_t* block, const ScreenBlockLayout& layout, uint64_t rows);

// Empty when a screen may have so many directions at this dimension, else the reason.
std::string check_screen_shape(int64_t dimension, int64_t directions);

}  // namespace trawl
