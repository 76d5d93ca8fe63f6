import { TrawlError } from '../../base/errors.ts';
import { defined } from '../../base/objects.ts';
import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import { applyTemplate, composeText } from '../../encoder/text-encoder.ts';
import { type Bm25Ranking, DEFAULT_BM25, type FieldRanking } from '../../engine/lexical/bm25.ts';
import type { LexicalFields, LexicalResult } from '../../engine/lexical/lexical-index.ts';
import { bestFields } from '../../engine/lexical/lexical-query.ts';
import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { QueryOutcome } from '../calls/query-outcome.ts';
import { inputOf, isText, type RetrieveCall, type RetrieveQuery, type ScopedCall } from '../calls/retrieve-call.ts';
import { OneAtATime } from '../one-at-a-time.ts';
import type { ExplainedTerm } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import { type LexicalLoad, NO_STATISTICS } from '../retriever-statistics.ts';
import { type Documents, readHits, withoutRows } from '../rows/hit-rows.ts';
import type { Stopwatch } from '../timings.ts';
import { type LexicalHits, type SearchTexts, searchPyserini, type TextsToSearch } from './pyserini-search.ts';

/** Most terms in the answer to a call that explains hits. Bounds the memory of calls with long queries. */
const MAX_EXPLAINED_TERMS = 1_000_000;

/** The vector of a query in BM25 search. */
const NO_VECTOR = new Float32Array(0);

/** The inverted indexes of an index, the defaults of their searches, and the counts of the searches. */
export class LexicalSearch {
  readonly fields: LexicalFields;
  readonly #info: Pick<RetrieverInfo, 'index' | 'rows' | 'bm25' | 'model'>;
  readonly #fieldRanking: FieldRanking;
  readonly #longTies = new OneAtATime();
  #load: LexicalLoad = NO_STATISTICS.lexical;

  /** @param fieldRanking weights and tie breaker of calls that set none. */
  constructor(
    fields: LexicalFields,
    info: Pick<RetrieverInfo, 'index' | 'rows' | 'bm25' | 'model'>,
    fieldRanking: FieldRanking = {},
  ) {
    this.fields = fields;
    this.#info = info;
    this.#fieldRanking = fieldRanking;
  }

  get load(): LexicalLoad {
    return this.#load;
  }

  /** The text whose words are searched: the parts of the query that the template of the call, or else of the index, keeps. */
  queryText(query: RetrieveQuery, template: QueryTemplate | undefined): string {
    return composeText(applyTemplate(inputOf(query), template ?? this.#info.model?.queryTemplate), '', null);
  }

  /** Searches the words of a call's queries and fetches the passages. @param rows of the index. */
  async retrieve(call: ScopedCall, passages: Documents, rows: number, watch: Stopwatch): Promise<QueryOutcome[]> {
    const { queries, k, bm25, bm25Order, template, rows: filter, excluded, signal } = call;
    const texts = queries.map((query) => this.queryText(query, template));
    const search: SearchTexts = (some, depth) =>
      watch.time('search', () => this.search(some, { k: depth, bm25, filter, excluded, signal }));
    const request = { texts, k, rows, passages, longTies: this.#longTies, watch, signal };
    const found = bm25Order === 'pyserini' ? await searchPyserini(search, request) : await searchByRow(search, request);
    this.count(queries, found);
    return texts.map((text, q): QueryOutcome => {
      const hits = found.lists[q]!;
      if (hits instanceof TrawlError) return { ok: false, error: hits };
      return {
        ok: true,
        hits,
        tokens: found.terms[q]!,
        truncated: false,
        text,
        cut: 'nothing',
        vector: NO_VECTOR,
        certificate: { exact: found.isExact?.[q] ?? true, rescored: null },
      };
    });
  }

  /**
   * Searches the contents of the passages. In an index with title and text apart, searches both fields as Elasticsearch's multi_match
   * does: the best field of a passage gives its score.
   *
   * @param call `filter`: the rows that may be found; undefined: all. `excluded`: those that are left out.
   * @throws TrawlError as `checkFieldRanking`.
   */
  async search(
    texts: readonly string[],
    {
      k: wanted,
      bm25,
      filter,
      excluded = new Set(),
      signal,
    }: Pick<RetrieveCall, 'k' | 'bm25' | 'signal'> &
      Partial<Pick<ScopedCall, 'excluded'>> & { readonly filter?: RowBitmap },
  ): Promise<LexicalResult> {
    const { weights, tieBreaker, ...parameters } = this.#ranking(bm25);
    const { indexes } = this.fields;
    const fields = [...indexes.keys()];
    checkFieldRanking(this.#info.index, { weights, tieBreaker }, fields);
    const contents = indexes.get('contents');
    const call = { k: Math.min(wanted + excluded.size, Math.max(1, this.#info.rows)), parameters, filter, signal };
    const found =
      contents === undefined
        ? await this.fields.search({
            queries: texts.map((text) => bestFields(text, fields, { weights, tieBreaker })),
            ...call,
          })
        : await contents.search({ queries: texts, ...call });
    return withoutRows(found, excluded, wanted);
  }

  /**
   * Returns, for each text and row, the terms of the text that the row has, field by field. A field with the weight 0 is left out.
   *
   * @throws TrawlError K_TOO_LARGE if there are more than a million terms.
   */
  async explain(
    queries: readonly { readonly text: string; readonly rows: readonly number[] }[],
    bm25: Bm25Ranking | undefined,
    signal: AbortSignal | undefined,
  ): Promise<ExplainedTerm[][][]> {
    const { weights = {}, tieBreaker: _, ...parameters } = this.#ranking(bm25);
    const explained: ExplainedTerm[][][] = [];
    let left = MAX_EXPLAINED_TERMS;
    for (const { text: query, rows } of queries) {
      const terms = rows.map((): ExplainedTerm[] => []);
      for (const [field, index] of this.fields.indexes) {
        const weight = weights[field] ?? 1;
        if (weight === 0) continue;
        const found = await index.explain({ query, rows, parameters, weight, maxTerms: left, signal });
        left -= found.reduce((sum, { length }) => sum + length, 0);
        if (left < 0) {
          throw new TrawlError(
            'K_TOO_LARGE',
            `The hits have more than ${MAX_EXPLAINED_TERMS} terms of their queries, the limit of explained terms per request. Send fewer ` +
              'or shorter queries per request, ask for fewer passages, or leave out explain.',
            { details: { maxTerms: MAX_EXPLAINED_TERMS } },
          );
        }
        for (const [i, each] of found.entries()) for (const term of each) terms[i]!.push({ ...term, field });
      }
      explained.push(terms);
    }
    return explained;
  }

  /** Counts a query only once if later calls continue its search, but adds the postings of every search. */
  count(queries: readonly RetrieveQuery[], found: Pick<LexicalResult, 'postings' | 'postingsRead'>): void {
    const { postings, postingsRead } = found;
    this.add({ queries: queries.filter(isText).length, postings: sum(postings), postingsRead: sum(postingsRead) });
  }

  add({ queries, postings, postingsRead }: LexicalLoad): void {
    const before = this.#load;
    this.#load = {
      queries: before.queries + queries,
      postings: before.postings + postings,
      postingsRead: before.postingsRead + postingsRead,
    };
  }

  #ranking(bm25: Bm25Ranking | undefined): Bm25Ranking {
    const { bm25: settings } = this.#info;
    const parameters = settings === null ? {} : { k1: settings.k1, b: settings.b };
    return { ...DEFAULT_BM25, ...parameters, ...defined(this.#fieldRanking), ...defined(bm25) };
  }
}

/**
 * Checks whether an index with these fields can be searched with these weights and this tie breaker.
 *
 * @throws TrawlError NOT_SUPPORTED for weights of fields that the index does not have apart; INVALID_REQUEST if all weights are 0.
 */
export function checkFieldRanking(
  index: string,
  { weights, tieBreaker }: FieldRanking,
  fields: readonly LexicalField[],
): void {
  if (fields.includes('contents')) {
    if (weights === undefined && tieBreaker === undefined) return;
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The index ${index} has title and text as one field, contents, so weights of fields and a tie breaker cannot be used. Make ` +
        'its inverted indexes again with trawl optimize INDEX --bm25 --bm25-fields title,text.',
    );
  }
  if (weights === undefined) return;
  const unknown = Object.keys(weights).find((field) => !fields.includes(field));
  if (unknown !== undefined) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The index ${index} has the fields ${fields.join(' and ')}, but a weight was given for ${JSON.stringify(unknown)}.`,
    );
  }
  if (fields.every((field) => weights[field] === 0)) {
    throw new TrawlError('INVALID_REQUEST', 'The weights of all fields are 0. At least one must be larger.');
  }
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The hits in the order of the engine: by score, equal scores by row. */
async function searchByRow(search: SearchTexts, request: TextsToSearch): Promise<LexicalHits> {
  const { texts, k, passages, watch, signal } = request;
  const found = await search(texts, k);
  return { ...found, lists: await readHits(found, passages, signal, watch) };
}
