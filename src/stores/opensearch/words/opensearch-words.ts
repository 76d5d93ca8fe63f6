import { throwIfCancelled } from '../../../base/abort.ts';
import { TrawlError } from '../../../base/errors.ts';
import { RunningCalls } from '../../../base/running-calls.ts';
import { type Analyse, analyser } from '../../../engine/lexical/analysis/analysers.ts';
import { type Bm25Parameters, DEFAULT_BM25 } from '../../../engine/lexical/bm25.ts';
import { checkCounting, checkLexicalRequest, checkQueries } from '../../../engine/lexical/lexical-checks.ts';
import type {
  LexicalFields,
  LexicalFieldsRequest,
  LexicalFieldsResult,
} from '../../../engine/lexical/lexical-fields.ts';
import type { LexicalIndex } from '../../../engine/lexical/lexical-index.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import { RowBitmap } from '../../../engine/row-bitmap.ts';
import { MAX_CANDIDATES, type RowCondition } from '../../published/candidate-source.ts';
import { allowedCondition } from '../../published/row-condition.ts';
import { foreignRow, incomplete } from '../../published/store-errors.ts';
import type { OpenSearchClient } from '../opensearch-client.ts';
import type { OpenSearchReply } from '../opensearch-replies.ts';
import { rowQuery, textLength } from '../row-query.ts';
import { ROW_FIELD } from '../stored-rows.ts';
import { OpenSearchWordIndex } from './opensearch-word-index.ts';
import type { WordFacts } from './word-facts.ts';
import { type SentQuery, wordQuery } from './word-query.ts';

/** Searches of a call. */
const SEARCHES_A_CALL = 32;
/** Characters of the conditions of a call, less than OpenSearch's limit of a request (100 MB). */
const TEXT_A_CALL = 2 ** 25;
/** Hits of the searches of a call. */
const HITS_A_CALL = 2 ** 18;
/** The largest number of hits that OpenSearch counts. */
const MAX_COUNT = 2 ** 31 - 1;

/**
 * BM25 search in OpenSearch: its own BM25 over terms that were made here, with the counts of all shards (`dfs_query_then_fetch`), so
 * that scores do not depend on the shards. Of equal scores the lower row is first.
 */
export class OpenSearchWords implements LexicalFields {
  readonly rows: number;
  readonly indexes: ReadonlyMap<LexicalField, LexicalIndex>;
  readonly mappedBytes = 0;
  readonly #client: OpenSearchClient;
  readonly #facts: WordFacts;
  readonly #analyse: Analyse;
  readonly #live: RowBitmap;
  readonly #liveCount: number;
  readonly #end: () => Promise<void>;
  readonly #calls = new RunningCalls('The index is closed.');

  /** @param end closes what the client needs. */
  constructor(client: OpenSearchClient, facts: WordFacts, end: () => Promise<void> = async () => undefined) {
    const { rows, liveRows, words } = facts;
    this.rows = rows;
    this.#client = client;
    this.#facts = facts;
    this.#analyse = analyser(words.analyser);
    this.#live = liveRows ?? new RowBitmap(rows).complement();
    this.#liveCount = this.#live.count();
    this.#end = end;
    this.indexes = new Map(
      words.fields.map((field) => [field, new OpenSearchWordIndex(client, { field, facts, fields: this })]),
    );
  }

  search(request: LexicalFieldsRequest): Promise<LexicalFieldsResult> {
    return this.#calls.run(() => this.#search(request));
  }

  close(): Promise<void> {
    return this.#calls.close(async () => {
      await Promise.all([...this.indexes.values()].map((index) => index.close()));
      await this.#end();
    });
  }

  async #search(request: LexicalFieldsRequest): Promise<LexicalFieldsResult> {
    const { queries, k, parameters = DEFAULT_BM25, filter, signal, count = 0 } = request;
    checkLexicalRequest(request, parameters, this.rows);
    checkCounting(request);
    checkQueries(queries, this);
    throwIfCancelled(signal);
    const rowsQuery = (rows: RowBitmap): object => rowQuery(this.#conditionOf(rows));
    const options = { parameters, hasFactor: this.#facts.hasFactor, analyse: this.#analyse, rowsQuery };
    const sent = queries.map((query) => wordQuery(query, options));
    if (sent.some(({ isScored }) => isScored)) this.#checkParameters(parameters);
    const { length } = queries;
    const totals = new Float64Array(length);
    const result: LexicalFieldsResult = {
      counts: new Uint32Array(length),
      rows: new Float64Array(length * k).fill(-1),
      scores: new Float32Array(length * k),
      terms: Uint32Array.from(sent, ({ terms }) => terms),
      // Not counted by OpenSearch.
      postings: new Float64Array(length),
      postingsRead: new Float64Array(length),
      isExact: sent.map(({ isExact }) => isExact),
      ...(count === 0 ? {} : { totals }),
    };
    const allowed = filter === undefined ? this.#live : filter.intersection(this.#live);
    const allowedCount = allowed.count();
    if (allowedCount === 0) return result;
    const condition = allowedCount === this.#liveCount ? undefined : this.#conditionOf(allowed);
    const take = (q: number, { hits, total }: OpenSearchReply): void => {
      for (const { sort } of hits) {
        const [score, row] = [Number(sort?.[0]), Number(sort?.[1])];
        if (!Number.isInteger(row) || row >= this.rows || !allowed.has(row)) throw foreignRow('OpenSearch', row);
        const at = q * k + result.counts[q]!++;
        result.rows[at] = row;
        result.scores[at] = score;
      }
      totals[q] = Math.min(total, count + 1);
    };
    const firstPage = Math.min(k, MAX_CANDIDATES);
    const textOf = condition === undefined ? 0 : textLength(condition);
    const atOnce = Math.max(
      1,
      Math.min(SEARCHES_A_CALL, Math.floor(HITS_A_CALL / firstPage), Math.floor(TEXT_A_CALL / Math.max(1, textOf))),
    );
    for (let first = 0; first < length; first += atOnce) {
      throwIfCancelled(signal);
      const some = sent.slice(first, first + atOnce);
      const page = { size: firstPage, condition, request };
      const replies = await this.#ask(
        some.map((query) => this.#body(query, page)),
        signal,
      );
      for (const [i, reply] of replies.entries()) {
        take(first + i, reply);
        await this.#further(some[i]!, reply, { condition, request, take: (next) => take(first + i, next) });
      }
    }
    return result;
  }

  /** The hits after the first page. */
  async #further(
    query: SentQuery,
    first: OpenSearchReply,
    {
      condition,
      request,
      take,
    }: {
      condition: RowCondition | undefined;
      request: LexicalFieldsRequest;
      take: (reply: OpenSearchReply) => void;
    },
  ): Promise<void> {
    let { hits } = first;
    for (let left = request.k - hits.length; hits.length === MAX_CANDIDATES && left > 0; left -= hits.length) {
      throwIfCancelled(request.signal);
      const after = hits.at(-1)!.sort!;
      const size = Math.min(left, MAX_CANDIDATES);
      const [reply] = await this.#ask([this.#body(query, { size, condition, request, after })], request.signal);
      take(reply!);
      hits = reply!.hits;
    }
  }

  #body(
    { query }: SentQuery,
    {
      size,
      condition,
      request: { count = 0, minScore },
      after,
    }: {
      size: number;
      condition: RowCondition | undefined;
      request: LexicalFieldsRequest;
      after?: readonly unknown[];
    },
  ): object {
    return {
      size,
      // The counts still cover all rows: a filter does not change scores.
      query: condition === undefined ? query : { bool: { must: [query], filter: [rowQuery(condition)] } },
      sort: [{ _score: 'desc' }, { [ROW_FIELD]: 'asc' }],
      // Without a count, lists that cannot reach the best k are skipped.
      track_total_hits: count === 0 ? false : Math.min(count + 1, MAX_COUNT),
      ...(minScore === undefined || minScore === Number.NEGATIVE_INFINITY ? {} : { min_score: Math.fround(minScore) }),
      search_after: after,
      _source: false,
      stored_fields: '_none_',
    };
  }

  /** Searches, and counts all rows in the same call: what is missing would lack among the hits. */
  async #ask(searches: readonly object[], signal: AbortSignal | undefined): Promise<readonly OpenSearchReply[]> {
    const all = { size: 0, query: { match_all: {} }, track_total_hits: true };
    const replies = await this.#client.searchMany(this.#facts.index, [...searches, all], signal, { ofAllShards: true });
    const { total } = replies.at(-1)!;
    if (total !== this.#liveCount) throw incomplete('OpenSearch', total, this.#liveCount);
    return replies.slice(0, -1);
  }

  #conditionOf(rows: RowBitmap): RowCondition {
    const allowedCount = rows.count();
    const facts = { first: 0, end: this.rows, isWhole: true, live: this.#live, liveCount: this.#liveCount };
    const condition = allowedCondition({ ...facts, allowed: rows, allowedCount }, true);
    if (condition !== undefined) return condition;
    throw new TrawlError(
      'NOT_SUPPORTED',
      `A set of ${allowedCount} of ${this.rows} rows is too large to be sent to OpenSearch with a search of words. Narrow the filter or the view, or search in mode dense.`,
    );
  }

  #checkParameters({ k1, b }: Bm25Parameters): void {
    const { words } = this.#facts;
    if (Math.fround(k1) === Math.fround(words.k1) && Math.fround(b) === Math.fround(words.b)) return;
    throw new TrawlError(
      'NOT_SUPPORTED',
      `This index is in OpenSearch, which keeps k1 and b with the index: ${words.k1} and ${words.b}, not ${k1} and ${b}. Leave them out, or change them in the folder (trawl optimize INDEX --bm25 --k1 ${k1} --b ${b}) and publish it under another name.`,
      { details: { k1: words.k1, b: words.b } },
    );
  }
}
