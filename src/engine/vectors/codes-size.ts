/**
 * Size of the codes file of `rows` vectors, from the layout in native/include/trawl/codes_file.hpp. Without a prefilter, these
 * are the resident bytes of a shard.
 */
export function codesBytes(rows: number, dimension: number): number {
  const padded = Math.ceil(dimension / 64) * 64;
  const rowsPerBlock = Math.min(1024, Math.max(16, Math.floor(2 ** 20 / padded / 16) * 16));
  // Codes, scale, residual, norm, code sum and bias of each row; the tail; blocks are multiples of 64 bytes.
  const blockBytes = Math.ceil((rowsPerBlock * (padded + 24) + 64) / 64) * 64;
  const headerBytes = Math.ceil((96 + 4 * dimension) / 4096) * 4096;
  return headerBytes + Math.ceil(rows / rowsPerBlock) * blockBytes + 64;
}

/** Upper limit of the size of a prefilter, from the limits in native/src/dense/prefilter/prefilter_choice.cpp; 0 if none is made. */
export function maxPrefilterBytes(rows: number, dimension: number): number {
  if (rows < 16_384 || dimension <= 128 || dimension > 4096) return 0;
  const components = Math.min(512, Math.floor((0.75 * (dimension - 1)) / 64) * 64);
  // Blocks as in codes, and the components as float32 in the header.
  return codesBytes(rows, components) + 4 * components * dimension;
}
