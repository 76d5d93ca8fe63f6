// Chooses the number of a prefilter's principal components, and the rows from which they are computed.
#pragma once
#include <string>
#include <vector>

#include "dense/codes/row_codes.hpp"
#include "dense/kernels/kernels.hpp"
#include "trawl/codes_file.hpp"
#include "trawl/rows.hpp"

namespace trawl {

struct PrefilterChoice {
  int64_t components;  // 0: a prefilter is not worthwhile
  std::string reason;
};

// Decides without reading rows. `components` of the result is the largest number to consider; 0: none is worthwhile.
PrefilterChoice limit_prefilter(int64_t rows, int64_t dimension);

// Returns `count` rows, evenly spaced over all rows, minus the mean: float32 [count][dimension]. `shift`, in [0, 1), moves all of
// them by this part of the spacing. Rows that contain NaN or are too large for the row test become zeros.
std::vector<float> sample_rows(const RowCoder& coder, const Rows& rows, int64_t count, double shift, ThreadPool& pool);

// Chooses 64, 128, ... or max_components of the components in basis_f32[max_components][dimension]: the number with the lowest
// cost in a trial on a sample of the rows, or 0 if even that cost is too high.
PrefilterChoice choose_prefilter(const CodesFile& codes, const Rows& rows, const RowCoder& coder, const std::vector<float>& basis_f32,
                                 int64_t max_components, const Kernels& kernels, ThreadPool& pool);

}  // namespace trawl
