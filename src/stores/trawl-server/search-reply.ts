import type { Perturbed } from '../../search/calls/query-outcome.ts';

/** The fields of a reply of /v1/search that clients here use (docs/http-api.md). */
export interface SearchReply {
  readonly index: ReplyIndex;
  /** The views that limit the request. */
  readonly view?: string;
  /** One per query. */
  readonly results: readonly SearchResult[];
}

export interface ReplyIndex {
  readonly name: string;
  readonly generation: string;
}

export type SearchResult =
  | {
      readonly ok: true;
      readonly embedded: { readonly text: string; readonly tokens: number | null; readonly cut: string };
      readonly certificate: { readonly exact: boolean; readonly rescored: number | null; readonly depth?: number };
      readonly perturbed?: Perturbed;
      readonly hits: readonly ReplyHit[];
    }
  | { readonly ok: false; readonly error: ReplyError };

export interface ReplyError {
  readonly code: string;
  readonly message: string;
  /** The limit of Pyserini's order, if the query exceeds it. */
  readonly maxTied?: number;
}

export interface ReplyHit {
  /** The index of the hit, if several were searched. */
  readonly index?: string;
  readonly row: number;
  /** As in the corpus. */
  readonly id?: unknown;
  readonly title?: string;
  readonly score: number;
  readonly firstStage?: { readonly rank: number; readonly score: number };
  readonly text: string;
  /** The row of the corpus, with `documents`. */
  readonly document?: object;
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
