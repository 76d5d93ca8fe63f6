import { composeText, type EncoderInput } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import { documentFields } from '../../src/passages/document-fields.ts';
import type {
  EmbedCall,
  EmbedResult,
  FindCall,
  FindResult,
  QueryOutcome,
  RetrieveCall,
  RetrieveResult,
  Retriever,
  RetrieverInfo,
  RetrieverStatistics,
} from '../../src/retrieval/retriever.ts';
import { NO_STATISTICS } from '../../src/retrieval/statistics-sum.ts';
import { modelIdentity } from './model-identity.ts';

/** Rows of every kind that a corpus may hold. Row 1 has no `contents`, row 2 an id beyond 2^53. */
export const FAKE_DOCUMENTS: readonly string[] = [
  '{"id":"0","contents":"\\"Paul Walker\\"\\nPaul William Walker IV was an American actor."}',
  '{"id": "s-1", "title": "Brooklyn Bridge", "text": "A bridge in New York.", "url": "https://example.org/b"}',
  '{"id":9007199254740993,"contents":"\\"Big id\\"\\nIts id is beyond 2^53.","weight":1.50}',
  '{"id":3,"text":"A text without a title.","__proto__":{"polluted":true}}',
  '{"id":"4","contents":"\\"<img src=x onerror=alert(1)>\\"\\n<script>alert(1)</script> & co. 💧 naïve Ω"}',
];

export interface FakeRetrieverOptions {
  readonly documents?: readonly string[];
  /** Name and generation of the index; default: fake-sample, generation-1. */
  readonly index?: string;
  readonly generation?: string;
  /** Runs before a call is answered; it may wait, or throw the call's error. */
  readonly before?: (call: RetrieveCall) => Promise<void> | void;
  /** Default: no call's answers are at hand. */
  readonly hasAnswers?: (call: RetrieveCall) => boolean;
  /** What waits; absent, nothing does. */
  readonly statistics?: () => RetrieverStatistics;
  /** Replaces the answer to one query; undefined keeps the usual one. */
  readonly outcome?: (input: EncoderInput, position: number) => QueryOutcome | undefined;
}

/** A retriever without a model: the same text always gets the same rows. Remembers what it was asked. */
export class FakeRetriever implements Retriever {
  readonly calls: RetrieveCall[] = [];
  closed = false;
  failure: TrawlError | undefined;
  readonly info: RetrieverInfo;
  readonly #options: FakeRetrieverOptions;
  readonly #documents: readonly string[];

  constructor(options: FakeRetrieverOptions = {}) {
    this.#options = options;
    this.#documents = options.documents ?? FAKE_DOCUMENTS;
    this.info = {
      index: options.index ?? 'fake-sample',
      rows: this.#documents.length,
      dimension: 4,
      metric: 'inner-product',
      generation: options.generation ?? 'generation-1',
      model: modelIdentity({
        name: 'fake-encoder',
        dimension: 4,
        normalize: true,
        maxTokens: { query: 256, passage: 256 },
      }),
    };
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    this.calls.push(call);
    if (this.closed) throw new TrawlError('NOT_READY', 'The index is being closed.');
    await this.#options.before?.(call);
    if (call.signal?.aborted === true) throw new TrawlError('CANCELLED', 'The caller went away.');
    const outcomes = call.queries.map(
      (input, i): QueryOutcome => this.#options.outcome?.(input, i) ?? this.#answer(textOf(input), call.k),
    );
    return { outcomes, timings: { queue: 2, embed: 1.25, search: 0.5, fetch: 0.25 } };
  }

  hasAnswers(call: RetrieveCall): boolean {
    return this.#options.hasAnswers?.(call) ?? false;
  }

  /** A text's vector is its length and its first three UTF-16 units. */
  async embed(call: EmbedCall): Promise<EmbedResult> {
    const vectors = new Float32Array(call.inputs.length * 4);
    const outcomes = call.inputs.map((input, i) => {
      const text = `${call.kind}: ${textOf(input)}`;
      vectors.set([text.length, text.charCodeAt(0), text.charCodeAt(1), text.charCodeAt(2)], i * 4);
      return { ok: true, tokens: text.length, truncated: false, cut: 'nothing' } as const;
    });
    return { vectors, outcomes, timings: { queue: 2, embed: 1.25, search: 0, fetch: 0 } };
  }

  async find(call: FindCall): Promise<FindResult> {
    const found = call.keys.map((key) =>
      this.#documents
        .map((document, row) => ({ row, document }))
        .filter(({ row, document }) => (call.by === 'row' ? `${row}` : documentFields(document)[call.by]) === key)
        .slice(0, call.limit),
    );
    return { found, timings: { queue: 0, embed: 0, search: 0.5, fetch: 0.25 } };
  }

  statistics(): RetrieverStatistics {
    return this.#options.statistics?.() ?? NO_STATISTICS;
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  #answer(text: string, k: number): QueryOutcome {
    let hash = 0;
    for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
    const count = Math.min(k, this.#documents.length);
    const hits = Array.from({ length: count }, (_, rank) => {
      const row = (hash + rank) % this.#documents.length;
      return { row, score: Math.fround(0.9 - rank / 10), document: this.#documents[row]! };
    });
    const truncated = text.length > 1_000;
    return {
      ok: true,
      hits,
      tokens: Math.min(text.length + 2, 256),
      truncated,
      text,
      cut: truncated ? 'tail' : 'nothing',
      certificate: { exact: true, rescored: count },
    };
  }
}

/** Waits until the call's signal aborts, then rejects as a retriever must. */
export function untilAborted(call: RetrieveCall): Promise<void> {
  return new Promise((_resolve, reject) => {
    call.signal?.addEventListener('abort', () => reject(new TrawlError('CANCELLED', 'The caller went away.')), {
      once: true,
    });
  });
}

function textOf(input: EncoderInput): string {
  return composeText(input, '', '[SEP]');
}
