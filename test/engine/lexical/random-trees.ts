import type { LexicalQuery } from '../../../src/engine/lexical/lexical-query.ts';
import type { RowBitmap } from '../../../src/engine/row-bitmap.ts';

export type Random = () => number;

export function pick<T>(random: Random, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)]!;
}

/** Frequent words are short; é and 北京 are split by the analyser of their own. */
const WORDS = ['a', 'b', 'c', 'd', 'e', 'é', '北京', 'f', 'g', 'h', 'i', 'j'];

export function randomWords(random: Random, most: number): string {
  const word = (): string => WORDS[Math.floor((WORDS.length + 1) ** random()) - 1]!;
  return Array.from({ length: Math.floor(random() * (most + 1)) }, word).join(' ');
}

/** A tree over the fields title and text that has every kind of node. */
export function randomTree(random: Random, depth: number, sets: readonly RowBitmap[]): LexicalQuery {
  const boost = random() < 0.7 ? undefined : pick(random, [0, 0.25, 1, 2, 3.7, 1e-3]);
  const field = pick(random, ['title', 'text'] as const);
  const clauses = (chance: number, most: number): LexicalQuery[] | undefined =>
    random() < chance
      ? Array.from({ length: Math.floor(random() * (most + 1)) }, () => randomTree(random, depth - 1, sets))
      : undefined;
  const type =
    depth === 0 || random() < 0.25 ? 'leaf' : pick(random, ['bool', 'bool', 'or', 'dis-max', 'constant'] as const);
  switch (type) {
    case 'bool':
      return {
        type: 'bool',
        must: clauses(0.6, 2),
        should: clauses(0.7, 4),
        filter: clauses(0.25, 2),
        mustNot: clauses(0.2, 1),
        minimumShouldMatch: pick(random, [undefined, undefined, 0, 1, 2]),
        boost,
      };
    case 'or':
      return {
        type: 'bool',
        should: clauses(1, 5),
        minimumShouldMatch: pick(random, [undefined, undefined, 1, 2, 3]),
        boost,
      };
    case 'dis-max':
      return { type: 'dis-max', queries: clauses(1, 3)!, tieBreaker: pick(random, [undefined, 0, 0.3, 1]), boost };
    case 'constant':
      return { type: 'constant-score', query: randomTree(random, depth - 1, sets), boost };
    default: {
      const chance = random();
      if (chance < 0.05) return { type: 'match-all', boost };
      if (chance < 0.07) return { type: 'match-none' };
      if (chance < 0.14) {
        const rows = pick(random, sets);
        const scores = Float32Array.from({ length: rows.count() }, (_, i) => (i % 7) * 0.3);
        return { type: 'rows', rows, boost, scores: random() < 0.5 ? undefined : scores };
      }
      if (chance < 0.4) return { type: 'term', field, term: pick(random, [...WORDS, 'absent']), boost };
      // Few words, so that some are repeated, and one that no passage has.
      const text = `${randomWords(random, 6)} ${random() < 0.2 ? 'absent' : ''}`;
      const rules = [
        { above: 1, count: -40, isPercent: true },
        { above: 3, count: pick(random, [2, -1]), isPercent: false },
      ];
      const operator = pick(random, [undefined, undefined, 'or', 'and'] as const);
      return {
        type: 'match',
        field,
        text,
        operator,
        minimumShouldMatch: pick(random, [undefined, undefined, 0, 1, 2, 3, -1, rules]),
        withoutTerms: pick(random, [undefined, 'none', 'all'] as const),
        boost,
      };
    }
  }
}
