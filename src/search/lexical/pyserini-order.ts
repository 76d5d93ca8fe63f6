/** A hit with the text by which Pyserini orders hits with equal scores. */
export interface Ranked {
  readonly row: number;
  readonly score: number;
  /** Undefined for a passage without id. */
  readonly id: string | undefined;
}

const { fround } = Math;
const TIE = fround(1e-4);
const STEP = fround(1e-6);

/**
 * Sorts as Anserini's SimpleSearcher does: by falling score, then by the UTF-8 bytes of the id, then by row. Passages without id come
 * before others with the same score, as documents without a value do in Lucene.
 */
export function comparePyserini(a: Ranked, b: Ranked): number {
  return b.score - a.score || compareIds(a.id, b.id) || a.row - b.row;
}

/**
 * The scores that Anserini reports for a ranked list of float32 scores: rounded to four decimals, in float64; then a score that is
 * at most 1e-4 below the score before it is lowered by 1e-6 times its position in that run, in float32.
 */
export function pyseriniScores(scores: readonly number[]): number[] {
  const altered: number[] = [];
  let inRun = 0;
  for (const [i, score] of scores.entries()) {
    const rounded = fround(Math.round(score * 1e4) / 1e4);
    inRun = i === 0 || fround(altered[i - 1]! - rounded) > TIE ? 0 : inRun + 1;
    altered.push(inRun === 0 ? rounded : fround(rounded - fround(STEP * inRun)));
  }
  return altered;
}

/** UTF-8 orders like code points. UTF-16 does not: it has surrogates, which stand for the largest ones, below U+E000. */
function compareIds(a: string | undefined, b: string | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return -1;
  if (b === undefined) return 1;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [unitA, unitB] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (unitA !== unitB) return codePointRank(unitA) - codePointRank(unitB);
  }
  return a.length - b.length;
}

/** Moves surrogates above all other units. */
function codePointRank(unit: number): number {
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
