// The header of a prefilter file. The reader and the writer use it.
#pragma once
#include <string>
#include <vector>

#include "trawl/prefilter_file.hpp"

namespace trawl {

uint64_t prefilter_header_bytes(int64_t dimension, int64_t components);
uint64_t prefilter_header_checksum(PrefilterHeader header, const std::vector<float>& basis_f32);
PrefilterHeader make_prefilter_header(const CodesFile& codes, int64_t components, double orthogonality_error,
                                      const std::vector<float>& basis_f32);
uint64_t prefilter_block_checksum(const uint8_t* block, const PrefilterBlockLayout& layout, uint64_t rows);

// Checks whether a prefilter for this dimension can have this number of components. Returns an empty string if it can, else the
// reason.
std::string check_prefilter_shape(int64_t dimension, int64_t components);

// Throws kBadFile, naming the file, unless all fields are valid and safe to use as sizes.
void check_prefilter_header(const std::string& path, const PrefilterHeader& header, int64_t file_bytes);

}  // namespace trawl
