import { codesBytes, maxPrefilterBytes } from '../../src/engine/vectors/codes-size.ts';
import { fp16FileBytes } from '../../src/engine/vectors/faiss-format.ts';

export const SIZE_STEPS = ['rows', 'corpus', 'index', 'scan', 'plan', 'open', 'memory', 'prefilter'] as const;
export type SizeStep = (typeof SIZE_STEPS)[number];

/** Free disk that the test leaves to other programs. Below it the test stops and removes its files. */
export const RESERVED_DISK_BYTES = 8_000_000_000;

/** A line of the corpus, and its passage in the index with the SQLite indexes: at most 120 bytes. */
const BYTES_PER_PASSAGE = 120;

/** Seconds of a step for a million rows on two cores, that of the first run. A busy machine needs several times as long. */
const SECONDS_PER_MILLION: Readonly<Record<SizeStep, number>> = {
  rows: 27,
  corpus: 1.5,
  index: 60,
  scan: 8,
  plan: 1,
  open: 2,
  memory: 10,
  prefilter: 20,
};

/** Disk that the test needs: rows, codes, the largest prefilter, corpus and passages. */
export function sizeDiskBytes(rows: number, dimension: number): number {
  return (
    fp16FileBytes(rows, dimension) +
    codesBytes(rows, dimension) +
    maxPrefilterBytes(rows, dimension) +
    rows * BYTES_PER_PASSAGE
  );
}

/** About how long the steps take, in seconds. */
export function expectedSeconds(steps: readonly SizeStep[], rows: number): number {
  return steps.reduce((sum, step) => sum + (SECONDS_PER_MILLION[step] * rows) / 1e6, 0);
}
