import { TrawlError } from '../../../base/errors.ts';
import type { Analyse } from '../../../engine/lexical/analysis/analysers.ts';
import type { Bm25Parameters } from '../../../engine/lexical/bm25.ts';
import type { LexicalQuery } from '../../../engine/lexical/lexical-query.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import { rewriteQuery } from '../../../engine/reference/lexical/composed-rewrite.ts';
import {
  type BoolNode,
  isPureDisjunction,
  type Node,
  nodesOf,
} from '../../../engine/reference/lexical/composed-tree.ts';
import type { RowBitmap } from '../../../engine/row-bitmap.ts';
import { ROW_FIELD } from '../../published/published-row.ts';
import { wordField } from '../stored-rows.ts';

/** OpenSearch's limit of the clauses of a query, unless indices.query.bool.max_clause_count says otherwise. */
const MAX_CLAUSES = 1_024;
const MAX_SCORED_ROWS = 4_096;

export interface SentQuery {
  readonly query: object;
  readonly terms: number;
  /** Whether k1 and b of the request matter: a term is part of the score. */
  readonly isScored: boolean;
  /**
   * Whether scores equal Trawl's exactly: OpenSearch's weights of the terms are, and the tree is as flat as a text's tree. In deeper
   * trees, it may round sums elsewhere.
   */
  readonly isExact: boolean;
}

interface WordQueryOptions extends BoostScale {
  readonly analyse: Analyse;
  readonly rowsQuery: (rows: RowBitmap) => object;
}

/** Scores of rows, from a table: their float32 values are exact in JSON. */
const OWN_SCORE = `return params.scores.get(String.valueOf(doc['${ROW_FIELD}'].value));`;

/**
 * Writes a tree in OpenSearch's language, in the form that Lucene rewrites it to: the shape decides where sums are rounded to float32, and
 * this form stays as it is.
 *
 * @throws TrawlError INVALID_REQUEST if it has more clauses than OpenSearch takes.
 */
export function wordQuery(query: LexicalQuery, options: WordQueryOptions): SentQuery {
  const terms = new Set<string>();
  const root = rewriteQuery(
    nodesOf(
      query,
      (_: LexicalField, text) => options.analyse(text),
      (term) => terms.add(term),
    ),
  );
  const writer = new QueryWriter(options);
  const written = writer.write(root, 1, true);
  const { isScored, isExact } = writer;
  return { query: written, terms: terms.size, isScored, isExact: isExact && isOfText(root) };
}

/** Whether a tree stands for a text in one field, or in the best of several fields. */
function isOfText(root: Node): boolean {
  const unboosted = (node: Node): Node => (node.type === 'boost' ? node.child : node);
  // A text without words matches nothing.
  const isTerm = (node: Node): boolean => ['term', 'match-none'].includes(unboosted(node).type);
  const isOfField = (node: Node): boolean => {
    const own = unboosted(node);
    return isTerm(own) || (isPureDisjunction(own) && own.should.every(isTerm));
  };
  return isOfField(root) || (root.type === 'dis-max' && root.queries.every(isOfField));
}

class QueryWriter {
  isScored = false;
  isExact = true;
  #clauses = 0;
  readonly #options: WordQueryOptions;

  constructor(options: WordQueryOptions) {
    this.#options = options;
  }

  /** @param outer product of the boosts above the node. @param scored whether its score is part of the result. */
  write(node: Node, outer: number, scored: boolean, boost = 1): object {
    switch (node.type) {
      case 'boost':
        return this.write(node.child, outer, scored, node.boost);
      case 'term':
        return this.#term(node, outer, scored, boost);
      case 'bool':
        return this.#bool(node, Math.fround(outer * boost), scored, boost);
      case 'dis-max': {
        const queries = node.queries.map((query) => this.write(query, Math.fround(outer * boost), scored));
        return { dis_max: { queries, tie_breaker: node.tieBreaker, boost } };
      }
      case 'constant-score':
        return { constant_score: { filter: this.write(node.child, 1, false), boost } };
      case 'rows':
        return this.#rows(node, boost);
      case 'match-all':
        return { match_all: { boost } };
      case 'match-none':
        return { match_none: {} };
      default:
        throw new TypeError(`unknown node: ${node satisfies never}`);
    }
  }

  #term({ field, term }: Extract<Node, { type: 'term' }>, outer: number, scored: boolean, boost: number): object {
    if (++this.#clauses > MAX_CLAUSES) {
      throw new TrawlError(
        'INVALID_REQUEST',
        `A query has more than ${MAX_CLAUSES} different words, the most that OpenSearch searches at once. Shorten it.`,
        { details: { limit: MAX_CLAUSES } },
      );
    }
    const place = wordField(field);
    if (!scored) return { term: { [place]: { value: term } } };
    this.isScored = true;
    const sent = sentBoost(boost, outer, this.#options);
    this.isExact &&= sent.isExact;
    return { term: { [place]: { value: term, boost: sent.boost } } };
  }

  #bool({ must, should, filter, mustNot, minimum }: BoolNode, outer: number, scored: boolean, boost: number): object {
    const all = (nodes: readonly Node[], isScored: boolean): object[] =>
      nodes.map((node) => this.write(node, outer, isScored));
    const isOptional = must.length + filter.length > 0;
    if (minimum > should.length || (!isOptional && should.length === 0)) return { match_none: {} };
    return {
      bool: {
        must: all(must, scored),
        should: all(should, scored),
        filter: all(filter, false),
        must_not: all(mustNot, false),
        ...(should.length > 0 && { minimum_should_match: isOptional ? minimum : Math.max(1, minimum) }),
        boost,
      },
    };
  }

  #rows({ rows, scores }: Extract<Node, { type: 'rows' }>, boost: number): object {
    const set = this.#options.rowsQuery(rows);
    if (scores === undefined) return { constant_score: { filter: set, boost } };
    if (scores.length > MAX_SCORED_ROWS) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `A query has ${scores.length} passages with scores of their own; in OpenSearch, up to ${MAX_SCORED_ROWS} can be combined with words. Ask for fewer nearest passages.`,
        { details: { limit: MAX_SCORED_ROWS } },
      );
    }
    const table: Record<string, number> = {};
    let at = 0;
    for (let row = rows.next(0); row !== undefined; row = rows.next(row + 1)) table[row] = scores[at++]!;
    const script = { lang: 'painless', source: OWN_SCORE, params: { scores: table } };
    return { script_score: { query: set, script, boost } };
  }
}

const { fround } = Math;

/** Neighbours of the nearest boost that are tried on each side. */
const NEIGHBOURS = 4;

export interface BoostScale {
  readonly parameters: Pick<Bm25Parameters, 'k1' | 'k1Factor'>;
  /** Whether OpenSearch's scores have the factor k1 + 1, as before version 3. */
  readonly hasFactor: boolean;
}

/**
 * The boost of a term that OpenSearch is sent, so that the term gets the weight `termWeight`. Below boosts of `outer`
 * together, OpenSearch computes float32(float32(outer · boost) · (k1 + 1)), or without the last factor. Not every float32 is such a
 * product.
 *
 * @returns `isExact`: whether OpenSearch and Trawl give the term the same weight. @internal Exported for tests.
 */
export function sentBoost(boost: number, outer: number, { parameters, hasFactor }: BoostScale) {
  const factor = fround(1 + fround(parameters.k1));
  const total = fround(outer * fround(boost));
  const wanted = parameters.k1Factor ? fround(total * factor) : total;
  const given = (sent: number): number => (hasFactor ? fround(fround(outer * sent) * factor) : fround(outer * sent));
  const near = fround(wanted / outer / (hasFactor ? factor : 1));
  let best = near;
  for (const sent of [fround(boost), ...neighboursOf(near)]) {
    if (given(sent) === wanted) return { boost: sent, isExact: true };
    if (Math.abs(given(sent) - wanted) < Math.abs(given(best) - wanted)) best = sent;
  }
  return { boost: best, isExact: false };
}

/** The float32 numbers around a positive one, nearest first. */
function neighboursOf(value: number): number[] {
  const found = [value];
  for (let distance = 1; distance <= NEIGHBOURS; distance++) {
    for (const step of [-distance, distance]) {
      const bits = new Uint32Array(Float32Array.of(value).buffer);
      bits[0]! += step;
      found.push(new Float32Array(bits.buffer)[0]!);
    }
  }
  return found;
}
