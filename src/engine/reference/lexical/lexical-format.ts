/** Constants of a `.bm25` file; native/src/lexical/lexical_format.hpp describes the format. */
export const HEADER_BYTES = 256;
export const MAGIC = 'TRAWLBM\n';
export const VERSION = 1;
/** Name of each number that a header may have for its analyser. */
export const ANALYSER_NUMBERS = [undefined, 'english', 'standard', 'whitespace', 'cjk'] as const;
export type FileAnalyser = NonNullable<(typeof ANALYSER_NUMBERS)[number]>;

export const TERMS_PER_BLOCK = 32;
/** Each half of a term's first byte; a half of 15 is continued by a varint. */
export const HALF_BYTE = 15;
/** A tf in the bounds that stands for any number. */
export const UNBOUNDED_TF = 255;
/** Zero bytes after the lists. */
export const LISTS_PADDING = 8;
/** The sections after the lists begin at multiples of it. */
export const SECTION_ALIGNMENT = 64;
/** Bytes of a block's place in the term index. */
export const PLACE_BYTES = 16;

/** Postings of a full block. */
export const BLOCK_POSTINGS = 128;
/** Bytes of a list's bounds and of the head of a block, in a list of several blocks. */
export const BOUND_BYTES = 8;
export const HEAD_BYTES = 16;

/** Values in the header of a block that say that another byte follows. */
export const LONG_BLOCK_HEADER = 3;
export const MANY_EXCEPTIONS = 7;

/** The place of a bit of packed value `index`. A full block has four lanes, value i in lane i % 4, that alternate in words. */
export function valueBit(index: number, bit: number, bits: number, full: boolean): number {
  if (!full) return index * bits + bit;
  const inLane = Math.floor(index / 4) * bits + bit;
  return 128 * Math.floor(inLane / 32) + 32 * (index % 4) + (inLane % 32);
}

/** Bytes of `count` packed values. */
export function packedBytes(count: number, bits: number): number {
  return count === BLOCK_POSTINGS ? 16 * bits : Math.ceil((count * bits) / 8);
}
