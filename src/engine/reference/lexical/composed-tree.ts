import { TrawlError } from '../../../base/errors.ts';
import { defined } from '../../../base/objects.ts';
import { type LexicalQuery, MAX_QUERY_DEPTH, MAX_QUERY_NODES, minimumOf } from '../../lexical/lexical-query.ts';
import type { LexicalField } from '../../lexical/lexical-settings.ts';
import type { RowBitmap } from '../../row-bitmap.ts';

/** A query as Lucene represents it: immutable nodes, where a boost is a node too. See native/src/lexical/query_tree.hpp. */
export type Node =
  | { readonly type: 'term'; readonly field: LexicalField; readonly term: string }
  | ({ readonly type: 'bool' } & Clauses)
  | { readonly type: 'dis-max'; readonly queries: readonly Node[]; readonly tieBreaker: number }
  | { readonly type: 'constant-score'; readonly child: Node }
  | { readonly type: 'rows'; readonly rows: RowBitmap; readonly scores: Float32Array | undefined }
  | { readonly type: 'boost'; readonly child: Node; readonly boost: number }
  | { readonly type: 'match-all' }
  | { readonly type: 'match-none' };

export interface Clauses {
  readonly must: readonly Node[];
  readonly should: readonly Node[];
  readonly filter: readonly Node[];
  readonly mustNot: readonly Node[];
  /** Should clauses that must match. */
  readonly minimum: number;
}

export type BoolNode = Extract<Node, { readonly type: 'bool' }>;
export type DisMaxNode = Extract<Node, { readonly type: 'dis-max' }>;

export const MATCH_NONE: Node = { type: 'match-none' };
const NO_CLAUSES: Clauses = { must: [], should: [], filter: [], mustNot: [], minimum: 0 };

export function makeBool(clauses: Partial<Clauses>): BoolNode {
  return { ...NO_CLAUSES, ...defined(clauses), type: 'bool' };
}

/** @throws TrawlError INVALID_REQUEST if the boost, which may be a product or a sum of boosts, overflows float32. */
export function makeBoost(child: Node, boost: number): Node {
  const rounded = Math.fround(boost);
  if (!Number.isFinite(rounded))
    throw refused('the boosts of a query are too large: a product or a sum of boosts overflows float32');
  // Adding 0 turns −0 into 0.
  return { type: 'boost', child, boost: rounded + 0 };
}

export function clauseCount({ must, should, filter, mustNot }: Clauses): number {
  return must.length + should.length + filter.length + mustNot.length;
}

export function isPureDisjunction(node: Node): node is BoolNode {
  return node.type === 'bool' && clauseCount(node) === node.should.length && node.minimum <= 1;
}

/** Splits a text of a field into terms. */
type AnalyseField = (field: LexicalField, text: string) => readonly string[];

/**
 * The nodes of a checked query.
 *
 * @param onTerm called with each term.
 * @throws TrawlError INVALID_REQUEST if the terms of its texts break a limit.
 */
export function nodesOf(query: LexicalQuery, analyse: AnalyseField, onTerm: (term: string) => void): Node {
  let nodes = 0;
  const count = (depth: number): void => {
    if (depth > MAX_QUERY_DEPTH) throw refused(`a query is nested deeper than ${MAX_QUERY_DEPTH} levels; flatten it`);
    if (++nodes > MAX_QUERY_NODES) throw refused(`a query has more than ${MAX_QUERY_NODES} nodes; shorten it`);
  };
  const termOf = (field: LexicalField, term: string): Node => {
    onTerm(term);
    return { type: 'term', field, term };
  };
  const unboosted = (node: LexicalQuery, depth: number): Node => {
    const copyAll = (queries: readonly LexicalQuery[] = []): Node[] => queries.map((query) => copy(query, depth + 1));
    switch (node.type) {
      case 'term':
        // As in the engine, which gets the term as UTF-8: a lone surrogate becomes U+FFFD.
        return termOf(node.field, Buffer.from(node.term).toString());
      case 'match': {
        const terms = analyse(node.field, node.text);
        if (terms[0] === undefined) return node.withoutTerms === 'all' ? { type: 'match-all' } : MATCH_NONE;
        if (terms.length === 1) return termOf(node.field, terms[0]);
        const minimum = minimumOf(node.minimumShouldMatch ?? 0, node.operator === 'and' ? 0 : terms.length);
        const clause = (term: string, times = 1): Node => {
          count(depth + 1);
          const of = termOf(node.field, term);
          return times === 1 ? of : makeBoost(of, times);
        };
        if (node.operator === 'and') return makeBool({ must: terms.map((term) => clause(term)), minimum });
        if (minimum > 1) return makeBool({ should: terms.map((term) => clause(term)), minimum });
        // Repeated terms become one clause, as the rewriting would do later.
        const times = new Map<string, number>();
        for (const term of terms) times.set(term, (times.get(term) ?? 0) + 1);
        return makeBool({ should: [...times].map(([term, count]) => clause(term, count)), minimum });
      }
      case 'bool':
        return makeBool({
          must: copyAll(node.must),
          should: copyAll(node.should),
          filter: copyAll(node.filter),
          mustNot: copyAll(node.mustNot),
          minimum: node.minimumShouldMatch ?? 0,
        });
      case 'dis-max':
        return { type: 'dis-max', queries: copyAll(node.queries), tieBreaker: Math.fround(node.tieBreaker ?? 0) };
      case 'constant-score':
        return { type: 'constant-score', child: copy(node.query, depth + 1) };
      case 'rows':
        return { type: 'rows', rows: node.rows, scores: node.scores };
      case 'match-all':
        return { type: 'match-all' };
      case 'match-none':
        return MATCH_NONE;
      default:
        throw new TypeError(`unknown query: ${node satisfies never}`);
    }
  };
  const copy = (node: LexicalQuery, depth: number): Node => {
    count(depth);
    const boost = Math.fround(node.boost ?? 1);
    const copied = unboosted(node, depth);
    return boost === 1 || copied.type === 'match-none' ? copied : makeBoost(copied, boost);
  };
  return copy(query, 1);
}

/** Tells which queries Lucene considers equal. The order of clauses does not matter, nor do repeated filter or mustNot clauses. */
export class EqualityClasses {
  readonly #ofNode = new Map<Node, number>();
  readonly #ofKey = new Map<string, number>();

  of(node: Node): number {
    const known = this.#ofNode.get(node);
    if (known !== undefined) return known;
    const key = this.#key(node);
    const number = this.#ofKey.get(key) ?? this.#ofKey.size;
    this.#ofKey.set(key, number);
    this.#ofNode.set(node, number);
    return number;
  }

  #key(node: Node): string {
    switch (node.type) {
      case 'term':
        return JSON.stringify([node.type, node.field, node.term]);
      case 'bool': {
        const { must, should, filter, mustNot, minimum } = node;
        const parts = [this.#all(must), this.#all(should), this.#distinct(filter), this.#distinct(mustNot)];
        return JSON.stringify([node.type, minimum, ...parts]);
      }
      case 'dis-max':
        return JSON.stringify([node.type, node.tieBreaker, this.#all(node.queries)]);
      case 'constant-score':
        return JSON.stringify([node.type, this.of(node.child)]);
      case 'rows':
        return JSON.stringify([
          node.type,
          Buffer.from(node.rows.bytes).toString('base64'),
          node.scores === undefined ? null : [...node.scores],
        ]);
      case 'boost':
        return JSON.stringify([node.type, node.boost, this.of(node.child)]);
      default:
        return node.type;
    }
  }

  #all(nodes: readonly Node[]): number[] {
    return nodes.map((node) => this.of(node)).sort((a, b) => a - b);
  }

  #distinct(nodes: readonly Node[]): number[] {
    return [...new Set(this.#all(nodes))];
  }
}

export function refused(what: string): TrawlError {
  return new TrawlError('INVALID_REQUEST', `${what}.`);
}
