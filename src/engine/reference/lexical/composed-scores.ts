import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../../base/abort.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
import { type Bm25Parameters, termWeight } from '../../lexical/bm25.ts';
import type { LexicalField } from '../../lexical/lexical-settings.ts';
import { type BoolNode, type DisMaxNode, type Node, refused } from './composed-tree.ts';
import type { ReferenceLexicalIndex } from './reference-lexical-index.ts';

/** The matching rows and their float32 scores. */
export type Scores = Map<number, number>;

export interface ScoredIndex {
  readonly indexes: ReadonlyMap<LexicalField, ReferenceLexicalIndex>;
  readonly parameters: Bm25Parameters;
  /** Rows of the index. */
  readonly rows: number;
  /** Whether a row may be found. */
  readonly isAllowed: (row: number) => boolean;
  readonly signal: AbortSignal | undefined;
  /** Called with the postings of each term. */
  readonly onPostings: (count: number) => void;
}

const { fround } = Math;

/** Scores every row that a rewritten query matches. native/src/lexical/query_plan.cpp and query_window.cpp do the same. */
export async function composedScores(root: Node, index: ScoredIndex): Promise<Scores> {
  return (await new Evaluation(index).evaluate(root, 1, true)) ?? new Map();
}

/**
 * A query with a term that no live row has is undefined, as it has no scorer in Lucene: its clause is left out before the minimum
 * of should clauses is applied.
 */
class Evaluation {
  readonly #index: ScoredIndex;

  constructor(index: ScoredIndex) {
    this.#index = index;
  }

  /** @param scores false if only the matching rows are needed; their scores are then arbitrary. */
  async evaluate(node: Node, boost: number, scores: boolean): Promise<Scores | undefined> {
    await setImmediate();
    throwIfCancelled(this.#index.signal);
    switch (node.type) {
      case 'term':
        return this.#term(node, boost);
      case 'bool':
        return this.#bool(node, boost, scores);
      case 'dis-max':
        return this.#disMax(node, boost, scores);
      case 'constant-score': {
        const found = await this.evaluate(node.child, 1, false);
        return found === undefined || !scores ? found : constant(found.keys(), boost);
      }
      case 'boost':
        return this.evaluate(node.child, fround(node.boost * boost), scores);
      case 'rows': {
        // A query without rows has no scorer, as for a term that no row has.
        const rows = [...node.rows];
        if (rows.length === 0) return undefined;
        if (node.scores === undefined || !scores) return constant(rows.filter(this.#index.isAllowed), boost);
        return scored(rows, node.scores, boost, this.#index.isAllowed);
      }
      case 'match-all':
        return constant(allowedRows(this.#index), boost);
      case 'match-none':
        return undefined;
      default:
        throw new TypeError(`unknown node: ${node satisfies never}`);
    }
  }

  async #term({ field, term }: Extract<Node, { type: 'term' }>, boost: number): Promise<Scores | undefined> {
    const { indexes, parameters, isAllowed, signal, onPostings } = this.#index;
    const index = indexes.get(field)!;
    const documentFrequency = index.documentFrequency(term);
    if (documentFrequency === 0) return undefined;
    const { documents } = index.counts;
    checkFinite(termWeight(parameters, boost, { documentFrequency, documents }));
    const found: Scores = new Map();
    let postings = 0;
    await index.score({ term, boost, documentFrequency }, parameters, new TimeSlice(signal), (row, score) => {
      postings++;
      if (isAllowed(row)) found.set(row, score);
    });
    onPostings(postings);
    return found;
  }

  async #disMax({ queries, tieBreaker }: DisMaxNode, boost: number, scores: boolean): Promise<Scores | undefined> {
    const found = await this.#evaluateAll(queries, boost, scores);
    if (found.length <= 1) return found[0];
    const best: Scores = new Map();
    const others = new Map<number, number>();
    for (const [row, score] of found.flatMap((one) => [...one])) {
      const before = best.get(row);
      if (before === undefined) best.set(row, score);
      else {
        others.set(row, (others.get(row) ?? 0) + Math.min(score, before));
        best.set(row, Math.max(score, before));
      }
    }
    for (const [row, score] of best) best.set(row, fround(score + (others.get(row) ?? 0) * tieBreaker));
    return best;
  }

  async #bool(node: BoolNode, boost: number, scores: boolean): Promise<Scores | undefined> {
    let must = await this.#evaluateAll(node.must, boost, scores);
    const filter = await this.#evaluateAll(node.filter, 1, false);
    if (must.length < node.must.length || filter.length < node.filter.length) return undefined;
    let should = await this.#evaluateAll(node.should, boost, scores);
    let { minimum } = node;
    if (should.length < minimum) return undefined;
    if (should.length === minimum) {
      [must, should, minimum] = [[...must, ...should], [], 0];
    }
    const required = [...must, ...filter];
    if (required.length === 0 && should.length === 0) return undefined;
    if (required.length === 0) minimum = Math.max(minimum, 1);
    const mustNot = await this.#evaluateAll(node.mustNot, 1, false);

    const optional = sums(should);
    // The row set of the smallest required clause, or of all should clauses.
    const rows = required.length === 0 ? optional.keys() : required.toSorted((a, b) => a.size - b.size)[0]!.keys();
    const found: Scores = new Map();
    for (const row of rows) {
      if (!required.every((clause) => clause.has(row)) || mustNot.some((clause) => clause.has(row))) continue;
      const { count, sum } = optional.get(row) ?? { count: 0, sum: 0 };
      if (count < minimum) continue;
      const base = fround(must.reduce((total, clause) => total + clause.get(row)!, 0));
      found.set(row, count === 0 ? base : fround(base + fround(sum)));
    }
    return found;
  }

  /** The results of the queries that have one. */
  async #evaluateAll(queries: readonly Node[], boost: number, scores: boolean): Promise<Scores[]> {
    const all: Scores[] = [];
    for (const query of queries) {
      const found = await this.evaluate(query, boost, scores);
      if (found !== undefined) all.push(found);
    }
    return all;
  }
}

/** For each row, the number of clauses that match it and the float64 sum of their scores. */
function sums(clauses: readonly Scores[]): Map<number, { count: number; sum: number }> {
  const all = new Map<number, { count: number; sum: number }>();
  for (const [row, score] of clauses.flatMap((clause) => [...clause])) {
    const { count, sum } = all.get(row) ?? { count: 0, sum: 0 };
    all.set(row, { count: count + 1, sum: sum + score });
  }
  return all;
}

function* allowedRows({ rows, isAllowed }: ScoredIndex): Generator<number, void> {
  for (let row = 0; row < rows; row++) if (isAllowed(row)) yield row;
}

function constant(rows: Iterable<number>, score: number): Scores {
  checkFinite(score);
  const found: Scores = new Map();
  for (const row of rows) found.set(row, score);
  return found;
}

function scored(
  rows: readonly number[],
  scores: Float32Array,
  boost: number,
  isAllowed: (row: number) => boolean,
): Scores {
  const found: Scores = new Map();
  for (const [i, row] of rows.entries()) {
    const score = fround(scores[i]! * boost);
    checkFinite(score);
    if (isAllowed(row)) found.set(row, score);
  }
  return found;
}

function checkFinite(weight: number): void {
  if (!Number.isFinite(weight)) throw refused("the boosts of a query are too large: a term's weight overflows float32");
}
