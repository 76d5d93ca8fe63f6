/** Constants of a `.bm25` file; native/src/lexical/lexical_format.hpp describes the format. */
export const HEADER_BYTES = 256;
export const MAGIC = 'TRAWLBM\n';
export const VERSION = 1;
/** Name of each number that a header may have for its analyser. */
export const ANALYSER_NUMBERS = [undefined, 'english', 'standard', 'whitespace', 'cjk'] as const;

export const TERMS_PER_BLOCK = 32;
/** Each half of a term's first byte; a half of 15 is continued by a varint. */
export const HALF_BYTE = 15;
/** Bytes of a block's place in the term index. */
export const PLACE_BYTES = 16;
/** Bytes of a list's bounds and of the head of a block, in a list of several blocks. */
export const BOUND_BYTES = 8;
export const HEAD_BYTES = 16;
