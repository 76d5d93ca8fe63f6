import { bug, ERROR_CODES, type ErrorCode, TrawlError } from '../errors.ts';
import type { Column } from '../filter/column.ts';
import { rerankScores } from '../rerank/rerank-api.ts';
import type { RerankOutcome } from '../rerank/reranker.ts';
import type { FindCall, FindResult, FoundPassage } from '../retrieval/calls/find-call.ts';
import { hasOtherHits } from '../retrieval/calls/perturbed.ts';
import { isOfQuery } from '../retrieval/calls/query-errors.ts';
import type { Hit, QueryOutcome } from '../retrieval/calls/query-outcome.ts';
import type { RerankCall, RerankResult } from '../retrieval/calls/rerank-call.ts';
import type { RetrieveCall, RetrieveQuery, RetrieveResult } from '../retrieval/calls/retrieve-call.ts';
import type { ScoreCall, ScoreOutcome, ScoreResult } from '../retrieval/calls/score-call.ts';
import { isEmbedded } from '../retrieval/embedded-query.ts';
import type { SearchMode } from '../retrieval/search-mode.ts';
import type { SearchSource, SearchSourceInfo } from '../retrieval/search-source.ts';
import { NO_TIMINGS } from '../retrieval/timings.ts';
import { NativeApi, type NativeApiOptions, type NativeReply } from './native-api.ts';
import { RequestSlots } from './request-slots.ts';
import { bm25Fields } from './search-fields.ts';
import {
  asSearchReply,
  idText,
  type ReplyError,
  type ReplyHit,
  type ReplyIndex,
  type SearchResult,
} from './search-reply.ts';
import { trawlServerUrl } from './trawl-server-url.ts';

export interface ServerRetrieverOptions extends NativeApiOptions {
  /** Name of the served index. Default: that of the URL, or the server's default. */
  readonly index?: string | undefined;
  /** Name of a view of the server. Default: none but those that the server itself sets. */
  readonly view?: string | undefined;
  /** Requests at the same time, ≥ 1. Default: 4. */
  readonly concurrency?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The server behind a `ServerRetriever`. */
export interface ServerFacts {
  readonly url: string;
  /** Version of Trawl. */
  readonly version: string;
  /** The views that limit every request; null without one. */
  readonly view: string | null;
  /** Hashes of the rows of these views, with commas in between; null without views or from an earlier version. */
  readonly viewSha256: string | null;
  /** The header x-trawl-state of the replies: a hash of version, index, models, views and filter; null from an earlier version. */
  readonly state: string | null;
}

/** Sizes of a request: below a server's default limits, and large enough to fill its batches. */
const QUERIES_PER_REQUEST = 64;
const PASSAGES_PER_REQUEST = 256;
const TEXTS_PER_RERANK = 1_000;
const DEFAULT_CONCURRENCY = 4;

/** Refusals that fewer queries per request avoid. */
const TOO_MUCH: ReadonlySet<string> = new Set([
  'K_TOO_LARGE',
  'TOO_MANY_QUERIES',
  'BODY_TOO_LARGE',
  'RERANK_TOO_LARGE',
]);

/** A passage in a reply of /v1/passages. */
interface ReplyPassage {
  readonly row: number;
  readonly document: object;
  readonly sameId?: readonly number[];
}

/** A passage in a reply of /v1/score. */
type ReplyScores = Partial<Record<'dense' | 'bm25', { readonly score: number; readonly rank: number | null }>>;

/**
 * An index of a running Trawl server, asked by its own API. Hits, scores and passages are those of the same index opened here, bit for
 * bit: every request names all settings, so that the server's own defaults do not count. A call is sent in requests of some queries,
 * several at the same time. If the server is busy, restarts or loses a connection, they are sent again.
 *
 * Every reply must come from the generation of the index that was found at the beginning, and from no perturbed search; else the call
 * rejects.
 */
export class ServerRetriever implements SearchSource {
  readonly info: SearchSourceInfo;
  readonly server: ServerFacts;
  readonly #api: NativeApi;
  readonly #slots: RequestSlots;

  private constructor(api: NativeApi, slots: RequestSlots, info: SearchSourceInfo, server: ServerFacts) {
    this.#api = api;
    this.#slots = slots;
    this.info = info;
    this.server = server;
  }

  /**
   * @param url of the server, also with the path of an index or a view: `http://host:8000/indexes/NAME`.
   * @throws TrawlError CONFIG_INVALID if no Trawl server answers there; NOT_FOUND for an unknown index or view; NOT_SUPPORTED for a
   * group of indexes; UNAUTHORIZED; INDEX_CHANGED.
   */
  static async open(
    url: string,
    { index, view, concurrency = DEFAULT_CONCURRENCY, signal, ...options }: ServerRetrieverOptions = {},
  ): Promise<ServerRetriever> {
    const part = (name: string, value: string | undefined): string =>
      value === undefined ? '' : `/${name}/${encodeURIComponent(value)}`;
    const base = `${trawlServerUrl(url)}${part('indexes', index)}${part('views', view)}`;
    const api = new NativeApi(base, options);
    const first = await api.send('/v1/passages', {}, signal);
    const named = accepted(api, first) as {
      readonly index?: ReplyIndex;
      readonly view?: string;
    };
    if (typeof named.index?.generation !== 'string') throw api.failed('its reply is not that of /v1/passages');
    const { indexes } = accepted(api, await api.send('/v1/indexes', undefined, signal)) as {
      readonly indexes: readonly IndexFacts[];
    };
    const facts = indexes.find(({ name }) => name === named.index!.name);
    if (facts === undefined) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `${base} answers from several indexes (${named.index.name}). Name one of them: ${indexes.map(({ name }) => name).join(', ')}.`,
      );
    }
    if (facts.generation !== named.index.generation) throw changed(base, facts.generation, named.index);
    const { version } = accepted(api, await api.send('/readyz', undefined, signal)) as { readonly version: string };
    const info = infoOf(facts);
    return new ServerRetriever(api, new RequestSlots(concurrency), info, {
      url: base,
      version,
      view: named.view ?? null,
      viewSha256: viewHash(facts, named.view),
      state: first.ok ? first.state : null,
    });
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries, documents = true, signal } = call;
    // The hits have whole texts although nothing reads them: excerpts would be shorter, but cost the server ten times as much time.
    const fields = { ...this.#searchFields(call), ...(documents ? { documents } : {}) };
    const outcomes = await this.#ofQueries(queries.map(queryField), async (part): Promise<Answered<QueryOutcome>> => {
      const reply = await this.#send('/v1/search', { queries: part, ...fields }, signal);
      if (!reply.ok) return reply;
      const known = asSearchReply(reply.json);
      if (known?.results.length !== part.length) throw this.#api.failed('its reply is not that of /v1/search');
      this.#checkOrigin(known, reply.state);
      return { ok: true, each: known.results.map((result) => this.#outcomeOf(result)) };
    });
    return { outcomes, timings: NO_TIMINGS };
  }

  async score({ queries, mode, maxRank, bm25, truncate = 'tail', signal }: ScoreCall): Promise<ScoreResult> {
    const ranking = mode === 'bm25' ? bm25Fields(this.#bm25Of({ ...(bm25 === undefined ? {} : { bm25 }) })) : {};
    const asked = queries.map(({ query, rows }) => ({ ...scoreField(query), rows }));
    const outcomes = await this.#ofQueries(asked, async (part): Promise<Answered<ScoreOutcome>> => {
      const reply = await this.#send(
        '/v1/score',
        { queries: part, modes: [mode], maxRank, truncate, ...ranking },
        signal,
      );
      if (!reply.ok) return reply;
      const { results, ...origin } = reply.json as {
        readonly index: ReplyIndex;
        readonly results: readonly (
          | { readonly ok: true; readonly passages: readonly (ReplyScores | null)[] }
          | Extract<SearchResult, { ok: false }>
        )[];
      };
      this.#checkOrigin(origin, reply.state);
      return {
        ok: true,
        each: results.map((result) =>
          result.ok
            ? { ok: true, scores: result.passages.map((passage) => passage?.[mode] ?? { score: 0, rank: null }) }
            : { ok: false, error: errorOf(result.error) },
        ),
      };
    });
    return { outcomes, timings: NO_TIMINGS };
  }

  async find({ by, keys, limit, filter, views, signal }: FindCall): Promise<FindResult> {
    if ((by !== 'id' && by !== 'row') || filter !== undefined || views !== undefined)
      throw bug('a server is asked for passages by id or row, without a filter');
    const passages = await this.#passages(by === 'id' ? { ids: keys } : { rows: keys.map(Number) }, signal);
    const furtherRows = passages.map((passage) => passage?.sameId?.slice(0, limit - 1) ?? []);
    const further = await this.#passages({ rows: furtherRows.flat() }, signal);
    let next = 0;
    const found = passages.map((passage, i) => {
      const others = further.slice(next, next + furtherRows[i]!.length);
      next += others.length;
      return [passage, ...others].flatMap((each) => (each === null ? [] : [foundPassage(each)]));
    });
    return { found, timings: NO_TIMINGS };
  }

  /** The scores of the server's reranker, with one request for each list. */
  async rerank({ lists, raw = false, signal }: RerankCall): Promise<RerankResult> {
    if (raw) throw bug('a server is asked for scores after the activation');
    const outcomes = await Promise.all(
      lists.map(async ({ query, passages }): Promise<RerankOutcome> => {
        const ask = async (documents: readonly string[]): Promise<Answered<number>> => {
          const body = { query, documents, top_n: documents.length, return_documents: false };
          const reply = await this.#send('/v1/rerank', body, signal);
          if (!reply.ok) return reply;
          this.#checkState(reply.state);
          return { ok: true, each: [...rerankScores('cohere', reply.json, documents.length)] };
        };
        let scores: Float32Array;
        try {
          scores = Float32Array.from(await this.#inParts(passages, TEXTS_PER_RERANK, ask));
        } catch (error) {
          // A list fails as a whole.
          if (error instanceof TrawlError && isOfQuery(error)) return { ok: false, error };
          throw error;
        }
        return { ok: true, scores, tokens: null, truncated: 0 };
      }),
    );
    return { outcomes, timings: NO_TIMINGS };
  }

  /** The answers to all queries, as `#inParts` gets them. If a request is refused because of one query, only that query fails. */
  #ofQueries<Query, Result extends QueryOutcome | ScoreOutcome>(
    queries: readonly Query[],
    ask: (part: readonly Query[]) => Promise<Answered<Result>>,
  ): Promise<readonly Result[]> {
    return this.#inParts(queries, QUERIES_PER_REQUEST, ask, (error) => ({ ok: false, error }) as Result);
  }

  /**
   * The answers to all items in their order, from requests of a few of them. A request that is refused for its size is sent again in
   * halves; with `failed`, also one that is refused for one of its queries.
   */
  async #inParts<Item, Result>(
    items: readonly Item[],
    length: number,
    ask: (part: readonly Item[]) => Promise<Answered<Result>>,
    failed?: (error: TrawlError) => Result,
  ): Promise<readonly Result[]> {
    const answer = async (part: readonly Item[]): Promise<readonly Result[]> => {
      const reply = await ask(part);
      if (reply.ok) return reply.each;
      const error = refusal(this.#api, reply);
      const isOfOne = failed !== undefined && isOfQuery(error);
      if (part.length > 1 && (isOfOne || TOO_MUCH.has(error.code))) {
        const half = part.length >> 1;
        return [...(await answer(part.slice(0, half))), ...(await answer(part.slice(half)))];
      }
      if (isOfOne) return [failed(error)];
      throw error;
    };
    return (await Promise.all(parts(items, length).map(answer))).flat();
  }

  async #passages(
    named: { readonly ids?: readonly string[]; readonly rows?: readonly number[] },
    signal: AbortSignal | undefined,
  ): Promise<readonly (ReplyPassage | null)[]> {
    const ask = async (body: object): Promise<Answered<ReplyPassage | null>> => {
      const reply = await this.#send('/v1/passages', body, signal);
      if (!reply.ok) return reply;
      const { passages, ...origin } = reply.json as {
        readonly index: ReplyIndex;
        readonly passages: readonly (ReplyPassage | null)[];
      };
      this.#checkOrigin(origin, reply.state);
      return { ok: true, each: passages };
    };
    const ofLists = await Promise.all([
      this.#inParts(named.ids ?? [], PASSAGES_PER_REQUEST, (ids) => ask({ ids })),
      this.#inParts(named.rows ?? [], PASSAGES_PER_REQUEST, (rows) => ask({ rows })),
    ]);
    return ofLists.flat();
  }

  #send(path: string, body: object, signal: AbortSignal | undefined): Promise<NativeReply> {
    return this.#slots.run(() => this.#api.send(path, body, signal), signal);
  }

  /** @throws TrawlError INDEX_CHANGED unless a reply comes from the index, generation and views of the beginning. */
  #checkOrigin(
    { index, view = null }: { readonly index?: ReplyIndex; readonly view?: string | null },
    state: string | null,
  ): void {
    const { url, view: within } = this.server;
    if (index?.generation !== this.info.generation || index.name !== this.info.index)
      throw changed(url, this.info.generation, index);
    if (view === within) {
      this.#checkState(state);
      return;
    }
    throw new TrawlError(
      'INDEX_CHANGED',
      `${url} answers within the view ${view ?? '(none)'}; at the beginning it was ${within ?? '(none)'}. Use the same API key and view, or begin again with --restart.`,
    );
  }

  /** @throws TrawlError INDEX_CHANGED if the server has another version, encoder, reranker, filter, or other passages in its views. */
  #checkState(state: string | null): void {
    if (state === this.server.state) return;
    throw new TrawlError(
      'INDEX_CHANGED',
      `${this.server.url} now has another version of Trawl, encoder, reranker or filter, or other passages in a view (x-trawl-state: ${state ?? 'none'}; at the beginning ${this.server.state ?? 'none'}). ` +
        'Start the server as before and repeat the command, or begin again with --restart.',
    );
  }

  /** All settings, so that the server's defaults do not count. */
  #searchFields({
    k,
    mode = this.#defaultMode,
    filter,
    hybrid,
    rerank,
    template,
    truncate = 'tail',
    ...call
  }: RetrieveCall): object {
    return {
      k,
      mode,
      truncate,
      rerank: rerank ?? false,
      ...(filter === undefined ? {} : { filter }),
      ...(mode === 'dense' ? {} : bm25Fields(this.#bm25Of(call))),
      ...(mode === 'hybrid' && hybrid !== undefined ? { hybrid } : {}),
      ...(template === undefined ? {} : { template }),
    };
  }

  /** The parameters of BM25; those of the index are named too, because a server can have other defaults for its fields. */
  #bm25Of({
    bm25,
    bm25Order = 'row',
  }: Pick<RetrieveCall, 'bm25' | 'bm25Order'>): Required<Pick<RetrieveCall, 'bm25Order'>> & Pick<RetrieveCall, 'bm25'> {
    const { bm25: ofIndex } = this.info;
    if (ofIndex === null || ofIndex.fields.includes('contents')) {
      return { bm25Order, ...(bm25 === undefined ? {} : { bm25 }) };
    }
    const own = { k1: ofIndex.k1, b: ofIndex.b, k1Factor: false, tieBreaker: 0, ...bm25 };
    return { bm25Order, bm25: { ...own, weights: { title: 1, text: 1, ...bm25?.weights } } };
  }

  get #defaultMode(): SearchMode {
    return this.info.modes[0]!;
  }

  #outcomeOf(result: SearchResult): QueryOutcome {
    if (!result.ok) return { ok: false, error: errorOf(result.error) };
    const { embedded, certificate, hits } = result;
    if (hasOtherHits(result.perturbed) || !certificate.exact) throw notOfIndex(this.server.url, result);
    return {
      ok: true,
      text: embedded.text,
      tokens: embedded.tokens,
      cut: embedded.cut as Extract<QueryOutcome, { ok: true }>['cut'],
      truncated: embedded.cut !== 'nothing',
      hits: hits.map(hitOf),
      vector: null,
      certificate,
    };
  }
}

/** The answers of a request, or its refusal. */
type Answered<Result> = { readonly ok: true; readonly each: readonly Result[] } | Extract<NativeReply, { ok: false }>;

/** An index as /v1/indexes describes it. */
interface IndexFacts {
  readonly name: string;
  readonly generation: string;
  readonly rows: number;
  readonly modes: readonly string[];
  readonly bm25: SearchSourceInfo['bm25'];
  readonly columns: readonly Column[];
  readonly model: SearchSourceInfo['model'];
  readonly reranker: SearchSourceInfo['reranker'];
  readonly views?: readonly { readonly name: string; readonly sha256?: string }[];
}

function viewHash({ views = [] }: IndexFacts, within: string | undefined): string | null {
  if (within === undefined) return null;
  const hashes = within.split(',').map((view) => views.find(({ name }) => name === view)?.sha256);
  return hashes.includes(undefined) ? null : hashes.join();
}

function infoOf({ name, modes, rows, generation, bm25, columns, model, reranker }: IndexFacts): SearchSourceInfo {
  return { index: name, modes: modes as readonly SearchMode[], rows, generation, bm25, columns, model, reranker };
}

/** @throws TrawlError of a request that the server refuses. */
function accepted(api: NativeApi, reply: NativeReply): object {
  if (!reply.ok) throw refusal(api, reply);
  return reply.json;
}

/** The error of a refused request, with the server's code if it is one of Trawl's. */
function refusal(api: NativeApi, { status, code, message }: Extract<NativeReply, { ok: false }>): TrawlError {
  if (code === undefined) return api.failed(`it answered ${status}`);
  return errorOf({ code, message: `${api.url} refuses the request: ${message}` });
}

/** An error that the server names. */
function errorOf({ code, message, maxTied }: ReplyError): TrawlError {
  const known = Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : 'INTERNAL';
  const details = maxTied === undefined ? {} : { maxTied };
  return new TrawlError(known, known === code ? message : `${code}: ${message}`, { details });
}

function changed(url: string, before: string, now: ReplyIndex | undefined): TrawlError {
  const found = now === undefined ? 'another server' : `the generation ${now.generation} of the index ${now.name}`;
  return new TrawlError(
    'INDEX_CHANGED',
    `${url} now answers from ${found}, and this run began with the generation ${before}: hits of both are not mixed. ` +
      'Load the former index on the server again and repeat the command, or begin again with --restart.',
    { details: { before, now: now?.generation ?? null } },
  );
}

/** The error for hits that may not be those of the index. A search counts rescored rows; a replay does not, so its count is null. */
function notOfIndex(url: string, { perturbed, certificate }: Extract<SearchResult, { ok: true }>): TrawlError {
  if (!hasOtherHits(perturbed) && certificate.rescored !== null) {
    return new TrawlError(
      'NOT_SUPPORTED',
      `${url} does not prove its hits (\`exact\` is false): it searches an approximate index in Milvus, which may miss some. Ask a server ` +
        'of the index in a folder, or published with `--index-type FLAT`.',
    );
  }
  return new TrawlError(
    'NOT_SUPPORTED',
    `${url} answers with other hits than those of its index: it was started with --perturb or --replay. Ask a server, or an address of it, without them.`,
  );
}

function queryField(query: RetrieveQuery): string | object {
  if (isEmbedded(query)) throw bug('a server is asked for texts, not for vectors');
  if (typeof query === 'string') return query;
  const { question, query: text, history } = query;
  return { question, query: text, ...(history === undefined ? {} : { history }) };
}

function scoreField(query: ScoreCall['queries'][number]['query']): object {
  if (typeof query === 'string') return { query };
  if (query.history !== undefined && query.history.length > 0) throw bug('a server scores queries without history');
  return { query: query.query, question: query.question };
}

function hitOf({ index, row, id, score, firstStage, document }: ReplyHit): Hit {
  if (index !== undefined) throw bug('a hit of one index names another');
  const text = idText(id);
  return {
    row,
    score,
    document: document === undefined ? '' : JSON.stringify(document),
    ...(firstStage === undefined ? {} : { firstStage }),
    ...(text === null ? {} : { id: text }),
  };
}

function foundPassage({ row, document }: ReplyPassage): FoundPassage {
  return { row, document: JSON.stringify(document) };
}

function parts<T>(list: readonly T[], length: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / length) }, (_, i) => list.slice(i * length, (i + 1) * length));
}
