import { TrawlError } from '../../src/base/errors.ts';
import { applyTemplate, composeText, type EncoderInput } from '../../src/encoder/text-encoder.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { Admission } from '../../src/search/admission.ts';
import type { QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import { inputOf, type RetrieveCall, type RetrieveResult } from '../../src/search/calls/retrieve-call.ts';
import type {
  CutCall,
  CutResult,
  EmbedCall,
  EmbedResult,
  ExplainCall,
  ExplainResult,
  FindCall,
  FindResult,
  OpenRetriever,
  RerankCall,
  RerankResult,
  ScoreCall,
  ScoreResult,
  SelectCall,
} from '../../src/search/retriever.ts';
import type { RetrieverInfo } from '../../src/search/retriever-info.ts';
import { NO_STATISTICS, type RetrieverStatistics } from '../../src/search/retriever-statistics.ts';
import { modelIdentity } from './model-identity.ts';

/** Rows as corpora have them. Row 1 has no `contents`, row 2 has an id beyond 2^53. */
export const FAKE_DOCUMENTS: readonly string[] = [
  '{"id":"0","contents":"\\"Paul Walker\\"\\nPaul William Walker IV was an American actor."}',
  '{"id": "s-1", "title": "Brooklyn Bridge", "text": "A bridge in New York.", "url": "https://example.org/b"}',
  '{"id":9007199254740993,"contents":"\\"Big id\\"\\nIts id is beyond 2^53.","weight":1.50}',
  '{"id":3,"text":"A text without a title.","__proto__":{"polluted":true}}',
  '{"id":"4","contents":"\\"<img src=x onerror=alert(1)>\\"\\n<script>alert(1)</script> & co. 💧 naïve Ω"}',
];

export interface FakeRetrieverOptions {
  readonly documents?: readonly string[];
  /** Name of the index. Default: fake-sample. */
  readonly index?: string;
  /** Default: generation-1. */
  readonly generation?: string;
  /** Name of the encoder. Default: fake-encoder. */
  readonly model?: string;
  /** Called before a call is answered. It may wait, or throw the call's error. */
  readonly before?: (call: RetrieveCall) => Promise<void> | void;
  /** Default: nothing is waiting. */
  readonly statistics?: () => RetrieverStatistics;
  /** Replaces the answer to one query; if it returns undefined, the usual answer is kept. */
  readonly outcome?: (input: EncoderInput, position: number) => QueryOutcome | undefined;
}

/** A retriever without a model: the same text always gets the same rows. It records its calls. */
export class FakeRetriever implements OpenRetriever {
  readonly calls: RetrieveCall[] = [];
  readonly rerankCalls: RerankCall[] = [];
  closed = false;
  failure: TrawlError | undefined = undefined;
  readonly info: RetrieverInfo;
  readonly #options: FakeRetrieverOptions;
  readonly #documents: readonly string[];

  constructor(options: FakeRetrieverOptions = {}) {
    this.#options = options;
    this.#documents = options.documents ?? FAKE_DOCUMENTS;
    this.info = {
      index: options.index ?? 'fake-sample',
      rows: this.#documents.length,
      deletedRows: 0,
      modes: ['dense'],
      bm25: null,
      columns: [],
      views: [],
      reranker: { name: 'fake-reranker', maxTokens: 512 },
      memory: { residentBytes: 0, touchedBytes: 0, mappedBytes: 0, lexicalBytes: 0 },
      dimension: 4,
      metric: 'inner-product',
      generation: options.generation ?? 'generation-1',
      model: modelIdentity({
        name: options.model ?? 'fake-encoder',
        dimension: 4,
        normalize: true,
        maxTokens: { query: 256, passage: 256 },
      }),
    };
  }

  retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    return this.#admission.run('retrieve', call, () => this.#retrieve(call));
  }

  /** Refuses only what a request does not bear. */
  get #admission(): Admission {
    return new Admission(this.info, Number.POSITIVE_INFINITY, () => this.statistics());
  }

  async #retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    this.calls.push(call);
    if (this.closed) throw new TrawlError('NOT_READY', 'The index is being closed.');
    await this.#options.before?.(call);
    if (call.signal?.aborted === true) throw new TrawlError('CANCELLED', 'The caller disconnected.');
    const outcomes = call.queries.map(
      (query, i): QueryOutcome =>
        this.#options.outcome?.(inputOf(query), i) ??
        reranked(this.#answer(textOf(applyTemplate(inputOf(query), call.template)), call.k, call.exclude), call),
    );
    return {
      outcomes,
      timings: { queue: 2, embed: 1.25, search: 0.5, fetch: 0.25, rerank: call.rerank === undefined ? 0 : 4 },
    };
  }

  /** Every row has the whole text as its only term. */
  async explain({ queries }: ExplainCall): Promise<ExplainResult> {
    const explained = queries.map(({ query, rows }) => {
      const term = textOf(inputOf(query));
      return rows.map(() => [{ term, field: 'contents', boost: 1, documentFrequency: 1, score: 1 } as const]);
    });
    return { explained, timings: { queue: 0, embed: 0, search: 0.5, fetch: 0, rerank: 0 } };
  }

  /** A row's score is its rank in the fake ranking, negated. */
  async score({ queries, maxRank }: ScoreCall): Promise<ScoreResult> {
    const outcomes = queries.map(({ query, rows }) => {
      const ranking = this.#answer(textOf(query), this.#documents.length);
      const ranked = ranking.ok ? ranking.hits.map(({ row }) => row) : [];
      const scores = rows.map((row) => {
        const rank = ranked.indexOf(row) + 1;
        return { score: -rank, rank: rank > maxRank ? null : rank };
      });
      return { ok: true, scores } as const;
    });
    return { outcomes, timings: { queue: 0, embed: 1.25, search: 0.5, fetch: 0, rerank: 0 } };
  }

  async searchTree(): Promise<never> {
    throw new TrawlError('NOT_SUPPORTED', 'The fake retriever has no inverted index.');
  }

  async select({ ids, query }: SelectCall): Promise<RowBitmap> {
    if (ids === undefined && query === undefined) return new RowBitmap(this.info.rows).complement();
    throw new TrawlError('NOT_SUPPORTED', 'The fake retriever has no inverted index.');
  }

  async nearest(): Promise<never> {
    throw new TrawlError('NOT_SUPPORTED', 'The fake retriever has no vector index.');
  }

  /** The vector of a text is its length and its first three UTF-16 code units. */
  embed(call: EmbedCall): Promise<EmbedResult> {
    return this.#admission.run('embed', call, () => this.#embed(call));
  }

  async #embed(call: EmbedCall): Promise<EmbedResult> {
    const vectors = new Float32Array(call.inputs.length * 4);
    const outcomes = call.inputs.map((input, i) => {
      const prefix = call.inputType === 'plain' ? '' : `${call.inputType}: `;
      const text = prefix + textOf(input);
      vectors.set([text.length, text.charCodeAt(0), text.charCodeAt(1), text.charCodeAt(2)], i * 4);
      return { ok: true, tokens: text.length, truncated: false, cut: 'nothing' } as const;
    });
    return { vectors, outcomes, timings: { queue: 2, embed: 1.25, search: 0, fetch: 0, rerank: 0 } };
  }

  /** The score of a passage is its length. */
  async rerank(call: RerankCall): Promise<RerankResult> {
    this.rerankCalls.push(call);
    const outcomes = call.lists.map(({ passages }) => {
      const scores = Float32Array.from(passages, ({ length }) => length);
      return { ok: true, scores, tokens: 10 * passages.length, truncated: 0 } as const;
    });
    return { outcomes, timings: { queue: 1, embed: 0, search: 0, fetch: 0, rerank: 4 } };
  }

  async find(call: FindCall): Promise<FindResult> {
    const found = call.keys.map((key) =>
      this.#documents
        .map((document, row) => ({ row, document }))
        .filter(({ row, document }) => (call.by === 'row' ? `${row}` : documentFields(document)[call.by]) === key)
        .slice(0, call.limit),
    );
    return { found, timings: { queue: 0, embed: 0, search: 0.5, fetch: 0.25, rerank: 0 } };
  }

  /** A token is a word. */
  async cut({ texts, tokens }: CutCall): Promise<CutResult> {
    const cuts = texts.map((text) => {
      const words = text.split(' ');
      return { text: words.slice(0, tokens).join(' '), isCut: words.length > tokens };
    });
    return { texts: cuts, timings: { queue: 0, embed: 0, search: 0, fetch: 0.25, rerank: 0 } };
  }

  statistics(): RetrieverStatistics {
    return this.#options.statistics?.() ?? NO_STATISTICS;
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  #answer(text: string, k: number, exclude: readonly string[] = []): QueryOutcome {
    let hash = 0;
    for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
    const all = this.#documents.map((_, rank) => {
      const row = (hash + rank) % this.#documents.length;
      return { row, score: Math.fround(0.9 - rank / 10), document: this.#documents[row]! };
    });
    const hits = all.filter(({ document }) => !exclude.includes(documentFields(document).id ?? '')).slice(0, k);
    const count = hits.length;
    const truncated = text.length > 1_000;
    return {
      ok: true,
      hits,
      tokens: Math.min(text.length + 2, 256),
      truncated,
      text,
      cut: truncated ? 'tail' : 'nothing',
      vector: Float32Array.of(text.length, 0, 0, 0),
      certificate: { exact: true, rescored: count },
    };
  }
}

/** Marks the answer as reranked, if the call asks for it; the order stays. */
function reranked(outcome: QueryOutcome, { k, rerank }: RetrieveCall): QueryOutcome {
  if (!outcome.ok || rerank === undefined) return outcome;
  const hits = outcome.hits.map((hit, i) => ({ ...hit, firstStage: { rank: i + 1, score: hit.score } }));
  const model = rerank.model ?? 'fake-reranker';
  return { ...outcome, hits, rerank: { ok: true, model, passages: Math.max(k, rerank.depth), truncated: 0 } };
}

/** Waits until the call's signal aborts, then rejects as a retriever does. */
export function untilAborted(call: RetrieveCall): Promise<void> {
  return new Promise((_resolve, reject) => {
    call.signal?.addEventListener('abort', () => reject(new TrawlError('CANCELLED', 'The caller disconnected.')), {
      once: true,
    });
  });
}

function textOf(input: EncoderInput): string {
  return composeText(input, '', '[SEP]');
}
