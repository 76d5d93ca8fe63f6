/**
 * Bytes of the codes of `rows` vectors: the layout of native/include/trawl/codes_file.hpp. They are what wants to stay in
 * memory while an index is searched.
 */
export function codesBytes(rows: number, dimension: number): number {
  const padded = Math.ceil(dimension / 64) * 64;
  const rowsPerBlock = Math.min(1024, Math.max(16, Math.floor(2 ** 20 / padded / 16) * 16));
  // Codes, scale, residual, norm, code sum and bias of each row; the tail; blocks are multiples of 64 bytes.
  const blockBytes = Math.ceil((rowsPerBlock * (padded + 24) + 64) / 64) * 64;
  const headerBytes = Math.ceil((96 + 4 * dimension) / 4096) * 4096;
  return headerBytes + Math.ceil(rows / rowsPerBlock) * blockBytes + 64;
}

/** Most bytes that the screen before those codes takes, by the limits of native/src/screen_maker.cpp; 0 where none is made. */
export function mostScreenBytes(rows: number, dimension: number): number {
  if (rows < 16_384 || dimension <= 128 || dimension > 4096) return 0;
  const directions = Math.min(512, Math.floor((0.75 * (dimension - 1)) / 64) * 64);
  // A file of blocks as the codes are, with the directions as float32 in its header.
  return codesBytes(rows, directions) + 4 * directions * dimension;
}
