import type { Hit, IndexInfo, QueryResult, SearchReply as WholeReply } from '../../client/types.ts';
import type { RetrieveCall } from '../../search/calls/retrieve-call.ts';
import type { SearchSourceInfo } from '../../search/retriever.ts';
import type { SearchMode } from '../../search/search-mode.ts';

export type ReplyIndex = WholeReply['index'];

/** A result with its hits, which a reply has unless the request fuses the lists of its queries. */
export type SearchResult =
  | (Extract<QueryResult, { ok: true }> & { readonly hits: readonly Hit[] })
  | Extract<QueryResult, { ok: false }>;

interface SearchReply extends Omit<WholeReply, 'results'> {
  readonly results: readonly SearchResult[];
}

/** A reply of /v1/search; undefined for anything else. */
export function asSearchReply(json: unknown): SearchReply | undefined {
  const reply = json as Partial<SearchReply> | null | undefined;
  if (typeof reply?.index?.generation !== 'string') return undefined;
  return Array.isArray(reply.results) && reply.results.every(isResult) ? (reply as SearchReply) : undefined;
}

function isResult(result: Partial<Record<string, unknown>> | null): boolean {
  if (result?.ok === true) return Array.isArray(result.hits);
  return result?.ok === false && typeof (result.error as { code?: unknown } | undefined)?.code === 'string';
}

/** The id of a hit or document as text; null without one. */
export function idText(id: unknown): string | null {
  if (id === undefined || id === null) return null;
  return typeof id === 'string' ? id : JSON.stringify(id);
}

/** BM25's settings as the field `bm25` of a request: a factor k1 + 1 is named by the profile that has it. */
export function bm25Fields({ bm25, bm25Order }: Pick<RetrieveCall, 'bm25' | 'bm25Order'>): { readonly bm25?: object } {
  if (bm25 === undefined && bm25Order === undefined) return {};
  const { k1Factor = false, ...values } = bm25 ?? {};
  const order = bm25Order === undefined ? {} : { order: bm25Order };
  return { bm25: { ...(k1Factor ? { profile: 'elasticsearch' } : {}), ...values, ...order } };
}

export interface ServerFacts {
  readonly url: string;
  readonly version: string;
  /** The views that limit every request; null without one. */
  readonly view: string | null;
  /** Hashes of the rows of these views, separated by commas; null without views. */
  readonly viewSha256: string | null;
  /** The header x-trawl-state of the replies: a hash of version, index, models, views and filter. */
  readonly state: string | null;
}

/** The `viewSha256` of the views `within`, separated by commas. */
export function viewHash({ views = [] }: IndexInfo, within: string | undefined): string | null {
  if (within === undefined) return null;
  const hashes = within.split(',').map((view) => views.find(({ name }) => name === view)?.sha256);
  return hashes.includes(undefined) ? null : hashes.join();
}

export function infoOf({ name, modes, rows, generation, bm25, columns, model, reranker }: IndexInfo): SearchSourceInfo {
  return {
    index: name,
    modes: modes as SearchMode[],
    rows,
    generation,
    bm25: bm25 as SearchSourceInfo['bm25'],
    columns,
    model,
    reranker,
  };
}
