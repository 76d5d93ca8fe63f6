import { throwIfCancelled } from '../../../base/abort.ts';
import { TrawlError } from '../../../base/errors.ts';
import { RunningCalls } from '../../../base/running-calls.ts';
import { analyser } from '../../../engine/lexical/analysis/analysers.ts';
import {
  type Bm25Parameters,
  DEFAULT_BM25,
  type FieldCounts,
  inverseNorms,
  lengthCode,
  termScore,
  termWeight,
} from '../../../engine/lexical/bm25.ts';
import { checkedExplainRequest, checkFieldsRequest } from '../../../engine/lexical/lexical-checks.ts';
import type {
  ExplainRequest,
  LexicalFields,
  LexicalFieldsRequest,
  LexicalFieldsResult,
  LexicalIndex,
  TermScore,
} from '../../../engine/lexical/lexical-index.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import { RowBitmap } from '../../../engine/row-bitmap.ts';
import type { Bm25Record } from '../../../index/manifest/schemas.ts';
import { fieldText } from '../../../index/passages/document-fields.ts';
import { allowedCondition, MAX_CANDIDATES, type RowCondition } from '../../published/candidate-source.ts';
import type { WordProbe } from '../../published/publication.ts';
import { ROW_FIELD } from '../../published/published-row.ts';
import { foreignRow, incomplete } from '../../published/store-errors.ts';
import type { OpenSearchClient, OpenSearchReply } from '../opensearch-client.ts';
import { rowQuery, searchesAtOnce } from '../row-query.ts';
import { DOCUMENT_FIELD, documentOf, readRows, wordField } from '../stored-rows.ts';
import { wordQuery } from './word-query.ts';

const HITS_A_CALL = 2 ** 18;
/** The largest number of hits that OpenSearch counts. */
const MAX_COUNT = 2 ** 31 - 1;

/**
 * BM25 search in OpenSearch: its own BM25 over terms that were made here, with the counts of all shards (`dfs_query_then_fetch`), so
 * that scores do not depend on the shards. Of equal scores the lower row is first.
 *
 * @param end closes what the client needs.
 */
export function openSearchWords(
  client: OpenSearchClient,
  facts: WordFacts,
  end: () => Promise<void> = async () => undefined,
): LexicalFields {
  const { index, rows, liveRows, words, hasFactor } = facts;
  const analyse = analyser(words.analyser);
  const live = liveRows ?? new RowBitmap(rows).complement();
  const liveCount = live.count();
  const calls = new RunningCalls('The index is closed.');

  const conditionOf = (allowed: RowBitmap): RowCondition => {
    const allowedCount = allowed.count();
    const part = { first: 0, end: rows, live: liveCount, allowed: allowedCount };
    const condition = allowedCondition(part, { live, allowed }, true);
    if (condition !== undefined) return condition;
    throw new TrawlError(
      'NOT_SUPPORTED',
      `A set of ${allowedCount} of ${rows} rows is too large to be sent to OpenSearch with a search of words. Narrow the filter or the view, or search in mode dense.`,
    );
  };

  /** Searches, and counts all rows in the same call: missing rows would be missing among the hits, too. */
  const ask = async (searches: readonly object[], signal: AbortSignal | undefined): Promise<OpenSearchReply[]> => {
    const all = { size: 0, query: { match_all: {} }, track_total_hits: true };
    const replies = await client.searchMany(index, [...searches, all], signal, { ofAllShards: true });
    const { total } = replies.at(-1)!;
    if (total !== liveCount) throw incomplete('OpenSearch', total, liveCount);
    return replies.slice(0, -1);
  };

  const search = async (request: LexicalFieldsRequest): Promise<LexicalFieldsResult> => {
    const { queries, k, parameters = DEFAULT_BM25, filter, signal, count = 0 } = request;
    checkFieldsRequest(request, fields);
    throwIfCancelled(signal);
    const rowsQuery = (set: RowBitmap): object => rowQuery(conditionOf(set));
    const sent = queries.map((query) => wordQuery(query, { parameters, hasFactor, analyse, rowsQuery }));
    if (sent.some(({ isScored }) => isScored)) checkParameters(parameters, words);
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
      ...(count > 0 && { totals }),
    };
    const allowed = filter === undefined ? live : filter.intersection(live);
    const allowedCount = allowed.count();
    if (allowedCount === 0) return result;
    const condition = allowedCount === liveCount ? undefined : conditionOf(allowed);
    const take = (q: number, { hits, total }: OpenSearchReply): void => {
      for (const { sort } of hits) {
        const [score, row] = [Number(sort?.[0]), Number(sort?.[1])];
        if (!Number.isInteger(row) || row >= rows || !allowed.has(row)) throw foreignRow('OpenSearch', row);
        const at = q * k + result.counts[q]!++;
        result.rows[at] = row;
        result.scores[at] = score;
      }
      totals[q] = Math.min(total, count + 1);
    };
    const firstPage = Math.min(k, MAX_CANDIDATES);
    const atOnce = searchesAtOnce(condition, Math.floor(HITS_A_CALL / firstPage));
    for (let first = 0; first < length; first += atOnce) {
      throwIfCancelled(signal);
      const some = sent.slice(first, first + atOnce);
      const pages = some.map(({ query }) => searchBody(query, condition, request, { size: firstPage }));
      for (const [i, reply] of (await ask(pages, signal)).entries()) {
        take(first + i, reply);
        let { hits } = reply;
        // Further pages.
        for (let left = k - hits.length; hits.length === MAX_CANDIDATES && left > 0; left -= hits.length) {
          throwIfCancelled(signal);
          const size = Math.min(left, MAX_CANDIDATES);
          const body = searchBody(some[i]!.query, condition, request, { size, after: hits.at(-1)!.sort });
          const [next] = await ask([body], signal);
          take(first + i, next!);
          hits = next!.hits;
        }
      }
    }
    return result;
  };

  const fields: LexicalFields = {
    rows,
    indexes: new Map(
      words.fields.map((field) => [field, fieldIndex(client, field, facts, (request) => fields.search(request))]),
    ),
    mappedBytes: 0,
    search: (request) => calls.run(() => search(request)),
    close: () =>
      calls.close(async () => {
        await Promise.all([...fields.indexes.values()].map((each) => each.close()));
        await end();
      }),
  };
  return fields;
}

function checkParameters({ k1, b }: Bm25Parameters, words: Bm25Record): void {
  if (Math.fround(k1) === Math.fround(words.k1) && Math.fround(b) === Math.fround(words.b)) return;
  throw new TrawlError(
    'NOT_SUPPORTED',
    `This index is in OpenSearch, which keeps k1 and b with the index: ${words.k1} and ${words.b}, not ${k1} and ${b}. Leave them out, or change them in the folder (trawl optimize INDEX --bm25 --k1 ${k1} --b ${b}) and publish it under another name.`,
    { details: { k1: words.k1, b: words.b } },
  );
}

/** One page of the hits of a query. @param page.after the `sort` of the last hit of the page before. */
function searchBody(
  query: object,
  condition: RowCondition | undefined,
  { count = 0, minScore = Number.NEGATIVE_INFINITY }: LexicalFieldsRequest,
  { size, after }: { readonly size: number; readonly after?: readonly unknown[] },
): object {
  return {
    size,
    // The counts still cover all rows: a filter does not change scores.
    query: condition === undefined ? query : { bool: { must: [query], filter: [rowQuery(condition)] } },
    sort: [{ _score: 'desc' }, { [ROW_FIELD]: 'asc' }],
    // Without a count, lists that cannot reach the best k are skipped.
    track_total_hits: count === 0 ? false : Math.min(count + 1, MAX_COUNT),
    min_score: minScore === Number.NEGATIVE_INFINITY ? undefined : Math.fround(minScore),
    search_after: after,
    _source: false,
    stored_fields: '_none_',
  };
}

/** Terms that are counted, and documents that are read, in a call. */
const TERMS_A_CALL = 256;
const DOCUMENTS_A_CALL = 256;

export interface WordFacts {
  readonly index: string;
  readonly rows: number;
  /** The rows that are in OpenSearch; undefined for all. */
  readonly liveRows: RowBitmap | undefined;
  readonly words: Bm25Record;
  readonly counts: ReadonlyMap<LexicalField, FieldCounts>;
  readonly hasFactor: boolean;
}

/** The words of one field. */
function fieldIndex(
  client: OpenSearchClient,
  field: LexicalField,
  facts: WordFacts,
  search: LexicalFields['search'],
): LexicalIndex {
  const calls = new RunningCalls('The index is closed.');
  return {
    rows: facts.rows,
    counts: facts.counts.get(field)!,
    mappedBytes: 0,
    search({ queries, ...request }) {
      const trees = queries.map((text) => ({ type: 'match', field, text }) as const);
      return calls.run(() => search({ ...request, queries: trees }));
    },
    explain: (request) => calls.run(() => explain(client, field, facts, request)),
    close: () => calls.close(() => undefined),
  };
}

/** Computes the scores here, from documents and OpenSearch's counts: its own explanations are rounded texts. */
async function explain(
  client: OpenSearchClient,
  field: LexicalField,
  { index, rows: indexRows, words: { analyser: name }, counts }: WordFacts,
  request: ExplainRequest,
): Promise<TermScore[][]> {
  const { signal } = request;
  const { query, rows, parameters, weight, maxTerms } = checkedExplainRequest(request, indexRows);
  const analyse = analyser(name);
  const boosts = timesOf(analyse(query));
  const frequencies = new Map<string, number>();
  const terms = [...boosts.keys()];
  for (let at = 0; at < terms.length; at += TERMS_A_CALL) {
    const some = terms.slice(at, at + TERMS_A_CALL);
    const searches = some.map((term) => ({ size: 0, query: { term: { [wordField(field)]: term } } }));
    const replies = await client.searchMany(index, searches, signal);
    for (const [i, { total }] of replies.entries()) frequencies.set(some[i]!, total);
  }
  const fieldCounts = counts.get(field)!;
  const inverse = inverseNorms(parameters, fieldCounts);
  const distinct = [...new Set(rows)];
  const explained = new Map<number, TermScore[]>();
  let left = maxTerms;
  for (let at = 0; at < distinct.length && left >= 0; at += DOCUMENTS_A_CALL) {
    throwIfCancelled(signal);
    const some = distinct.slice(at, at + DOCUMENTS_A_CALL);
    const hits = await readRows(client, index, { rows: some, source: [DOCUMENT_FIELD], signal });
    for (const [i, hit] of hits.entries()) {
      const words = analyse(fieldText(documentOf(hit), field));
      const times = timesOf(words);
      const found: TermScore[] = [];
      for (const [term, count] of boosts) {
        const tf = times.get(term);
        if (tf === undefined) continue;
        const boost = Math.fround(Math.fround(weight) * count);
        const documentFrequency = frequencies.get(term)!;
        const most = termWeight(parameters, boost, { documentFrequency, documents: fieldCounts.documents });
        found.push({ term, boost, documentFrequency, score: termScore(most, tf, inverse[lengthCode(words.length)]!) });
      }
      explained.set(some[i]!, found);
      left -= found.length;
    }
  }
  return rows.map((row) => explained.get(row) ?? []);
}

function timesOf(terms: readonly string[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const term of terms) times.set(term, (times.get(term) ?? 0) + 1);
  return times;
}

/**
 * Whether OpenSearch's BM25 has the factor k1 + 1, as before version 3. It searches a term whose best row and score were recorded when the
 * index was published. An equal score also shows that the counts of all rows, on which every score depends, have not changed since.
 *
 * @throws TrawlError STORE_DIFFERS if the score is neither.
 */
export async function hasK1Factor(
  client: OpenSearchClient,
  index: string,
  probes: readonly WordProbe[],
): Promise<boolean> {
  if (probes.length === 0) return false;
  const replies = await client.searchMany(
    index,
    probes.map(({ field, term }) => ({
      size: 1,
      query: { term: { [wordField(field)]: term } },
      sort: [{ _score: 'desc' }, { [ROW_FIELD]: 'asc' }],
      track_total_hits: false,
      _source: false,
    })),
    undefined,
    { ofAllShards: true },
  );
  const factors = probes.map(({ field, term, row, score, factoredScore }, i) => {
    const sort = replies[i]!.hits[0]?.sort;
    // OpenSearch writes a float32 with as few digits as tell it from others.
    const [found, at] = [Math.fround(Number(sort?.[0])), Number(sort?.[1])];
    if (at === row && found === score) return false;
    if (at === row && found === factoredScore) return true;
    throw new TrawlError(
      'STORE_DIFFERS',
      `The index ${index} of OpenSearch at ${client.server} scores the word ${JSON.stringify(term)} of ${field} with ${found} in row ${at}; ` +
        `expected ${score} (or ${factoredScore}) in row ${row}. What was published was written to since. Publish the index again, under another name.`,
    );
  });
  return factors.includes(true);
}
