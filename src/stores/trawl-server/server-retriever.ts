import { bug, TrawlError } from '../../base/errors.ts';
import { defined } from '../../base/objects.ts';
import type * as client from '../../client/types.ts';
import type { IndexInfo, PassagesReply, ScoreReply } from '../../client/types.ts';
import { rerankScores } from '../../encoder/rerank/rerank-api.ts';
import type { RerankOutcome } from '../../encoder/rerank/reranker.ts';
import { isOfQuery } from '../../search/calls/query-errors.ts';
import { type Hit, hasOtherHits, type QueryOutcome } from '../../search/calls/query-outcome.ts';
import {
  isEmbedded,
  type RetrieveCall,
  type RetrieveQuery,
  type RetrieveResult,
} from '../../search/calls/retrieve-call.ts';
import type {
  FindCall,
  FindResult,
  FoundPassage,
  RerankCall,
  RerankResult,
  ScoreCall,
  ScoreOutcome,
  ScoreResult,
  SearchSource,
  SearchSourceInfo,
} from '../../search/retriever.ts';
import { NO_TIMINGS } from '../../search/timings.ts';
import { type Accepted, errorOf, NativeApi, type NativeApiOptions, trawlServerUrl } from './native-api.ts';
import {
  asSearchReply,
  bm25Fields,
  idText,
  infoOf,
  type SearchResult,
  type ServerFacts,
  viewHash,
} from './native-replies.ts';
import { changed, checkOrigin, checkState, notOfIndex } from './origin-check.ts';
import { inParts, RequestSlots } from './request-parts.ts';

export interface ServerRetrieverOptions extends NativeApiOptions {
  /** Name of the served index. Default: the index in the URL, or the server's default index. */
  readonly index?: string;
  /** Name of a view of the server. Default: none but those that the server itself sets. */
  readonly view?: string;
  /** Requests at the same time, ≥ 1. Default: 4. */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
}

/** Sizes of a request: below a server's default limits, and large enough to fill its batches. */
const QUERIES_PER_REQUEST = 64;
const PASSAGES_PER_REQUEST = 256;
const TEXTS_PER_RERANK = 1_000;
const DEFAULT_CONCURRENCY = 4;

type ReplyPassage = PassagesReply['passages'][number];

/**
 * An index of a running Trawl server, asked by its own API. Hits, scores and passages equal a search of the same index opened here, bit for
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
    const first = await api.ask('/v1/passages', {}, signal);
    const { index: named, view: within } = first.json as Partial<PassagesReply>;
    if (typeof named?.generation !== 'string') throw api.failed('its reply is not a reply of /v1/passages');
    const { indexes } = (await api.ask('/v1/indexes', undefined, signal)).json as { indexes: readonly IndexInfo[] };
    const facts = indexes.find(({ name }) => name === named.name);
    if (facts === undefined) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `${base} answers from several indexes (${named.name}). Name one of them: ${indexes.map(({ name }) => name).join(', ')}.`,
      );
    }
    if (facts.generation !== named.generation) throw changed(base, facts.generation, named);
    const { version } = (await api.ask('/readyz', undefined, signal)).json as { readonly version: string };
    return new ServerRetriever(api, new RequestSlots(concurrency), infoOf(facts), {
      url: base,
      version,
      view: within ?? null,
      viewSha256: viewHash(facts, within),
      state: first.state,
    });
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries, documents = true, signal } = call;
    // The hits have whole texts although nothing reads them: excerpts would be shorter, but cost the server ten times as much time.
    const fields = { ...this.#searchFields(call), documents: documents || undefined };
    const outcomes = await ofQueries(queries.map(queryField), async (part): Promise<readonly QueryOutcome[]> => {
      const { json, state } = await this.#ask('/v1/search', { queries: part, ...fields }, signal);
      const known = asSearchReply(json);
      if (known?.results.length !== part.length) throw this.#api.failed('its reply is not a reply of /v1/search');
      checkOrigin(this, known, state);
      return known.results.map((result) => this.#outcomeOf(result));
    });
    return { outcomes, timings: NO_TIMINGS };
  }

  async score({ queries, mode, maxRank, bm25, truncate = 'tail', signal }: ScoreCall): Promise<ScoreResult> {
    const fields = { modes: [mode], maxRank, truncate, ...(mode === 'bm25' && bm25Fields(this.#bm25Of({ bm25 }))) };
    const asked = queries.map(({ query, rows }) => ({ ...scoreField(query), rows }));
    const outcomes = await ofQueries(asked, async (part): Promise<readonly ScoreOutcome[]> => {
      const { json, state } = await this.#ask('/v1/score', { queries: part, ...fields }, signal);
      const { results, ...origin } = json as ScoreReply;
      checkOrigin(this, origin, state);
      return results.map((result) =>
        result.ok
          ? { ok: true, scores: result.passages.map((passage) => passage?.[mode] ?? { score: 0, rank: null }) }
          : { ok: false, error: errorOf(result.error) },
      );
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
        const ask = async (documents: readonly string[]): Promise<readonly number[]> => {
          const body = { query, documents, top_n: documents.length, return_documents: false };
          const { json, state } = await this.#ask('/v1/rerank', body, signal);
          checkState(this.server, state);
          return [...rerankScores('cohere', json, documents.length)];
        };
        try {
          const scores = Float32Array.from(await inParts(passages, TEXTS_PER_RERANK, ask));
          return { ok: true, scores, tokens: null, truncated: 0 };
        } catch (error) {
          // A list fails as a whole.
          if (error instanceof TrawlError && isOfQuery(error)) return { ok: false, error };
          throw error;
        }
      }),
    );
    return { outcomes, timings: NO_TIMINGS };
  }

  async #passages(
    named: { readonly ids: readonly string[] } | { readonly rows: readonly number[] },
    signal: AbortSignal | undefined,
  ): Promise<readonly ReplyPassage[]> {
    const ask = async (body: object): Promise<readonly ReplyPassage[]> => {
      const { json, state } = await this.#ask('/v1/passages', body, signal);
      const { passages, ...origin } = json as PassagesReply;
      checkOrigin(this, origin, state);
      return passages;
    };
    return 'ids' in named
      ? inParts(named.ids, PASSAGES_PER_REQUEST, (ids) => ask({ ids }))
      : inParts(named.rows, PASSAGES_PER_REQUEST, (rows) => ask({ rows }));
  }

  #ask(path: string, body: object, signal: AbortSignal | undefined): Promise<Accepted> {
    return this.#slots.run(() => this.#api.ask(path, body, signal), signal);
  }

  /** All settings, so that the server's defaults do not count. */
  #searchFields({
    k,
    mode = this.info.modes[0]!,
    filter,
    exclude,
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
      filter,
      exclude,
      ...(mode !== 'dense' && bm25Fields(this.#bm25Of(call))),
      hybrid: mode === 'hybrid' ? hybrid : undefined,
      template,
    };
  }

  /** The parameters of BM25. The index's own are sent too, because a server can have other defaults for its fields. */
  #bm25Of({
    bm25,
    bm25Order = 'row',
  }: Pick<RetrieveCall, 'bm25' | 'bm25Order'>): Pick<RetrieveCall, 'bm25' | 'bm25Order'> {
    const { bm25: ofIndex } = this.info;
    if (ofIndex === null || ofIndex.fields.includes('contents')) return { bm25Order, bm25 };
    const own = { k1: ofIndex.k1, b: ofIndex.b, k1Factor: false, tieBreaker: 0, ...(bm25 && defined(bm25)) };
    return { bm25Order, bm25: { ...own, weights: { title: 1, text: 1, ...defined(bm25?.weights) } } };
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

/** The answers to all queries. If a request is refused because of one query, only that query fails. */
function ofQueries<Query, Result extends QueryOutcome | ScoreOutcome>(
  queries: readonly Query[],
  ask: (part: readonly Query[]) => Promise<readonly Result[]>,
): Promise<readonly Result[]> {
  return inParts(queries, QUERIES_PER_REQUEST, ask, (error) => ({ ok: false, error }) as Result);
}

function queryField(query: RetrieveQuery): string | object {
  if (isEmbedded(query)) throw bug('a server is asked for texts, not for vectors');
  if (typeof query === 'string') return query;
  const { question, query: text, history } = query;
  return { question, query: text, history };
}

function scoreField(query: ScoreCall['queries'][number]['query']): object {
  if (typeof query === 'string') return { query };
  if (query.history !== undefined && query.history.length > 0) throw bug('a server scores queries without history');
  return { query: query.query, question: query.question };
}

function hitOf({ index, row, id, score, firstStage, document }: client.Hit): Hit {
  if (index !== undefined) throw bug('a hit of one index names another');
  const text = document === undefined ? '' : JSON.stringify(document);
  return { row, score, document: text, firstStage, id: idText(id) ?? undefined };
}

function foundPassage({ row, document }: NonNullable<ReplyPassage>): FoundPassage {
  return { row, document: JSON.stringify(document) };
}
