import {
  type EncodeOptions,
  type EncodeOutcome,
  type EncodeResult,
  type EncoderInput,
  NO_ENCODER_LOAD,
  type TextEncoder,
} from '../../src/encoder/text-encoder.ts';
import {
  NO_SEARCH_LOAD,
  type SearchRequest,
  type SearchResult,
  type VectorIndex,
} from '../../src/engine/vectors/vector-index.ts';
import type { PassageStore } from '../../src/index/passages/passage-store.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';

/** Calls of a retriever's parts, in order: `encode 2`, `search 2 × 3`, `fetch 0,1`, `close index`. */
export type Log = string[];

type Before = () => Promise<void> | void;

/** The vector of a text is the number it starts with. */
export class FakeEncoder implements TextEncoder {
  readonly dimension = 1;
  readonly separator = '[SEP]';
  readonly load = NO_ENCODER_LOAD;
  readonly failure = undefined;
  readonly identity = new FakeRetriever().info.model!;
  readonly calls: { inputs: readonly EncoderInput[]; options: EncodeOptions }[] = [];
  readonly #log: Log;
  readonly #fail: (input: EncoderInput) => EncodeOutcome | undefined;
  readonly #before: Before;

  constructor(log: Log, options: { fail?: (input: EncoderInput) => EncodeOutcome | undefined; before?: Before } = {}) {
    this.#log = log;
    this.#fail = options.fail ?? (() => undefined);
    this.#before = options.before ?? (() => undefined);
  }

  async encode(inputs: readonly EncoderInput[], options: EncodeOptions): Promise<EncodeResult> {
    this.#log.push(`encode ${inputs.length}`);
    this.calls.push({ inputs, options });
    await this.#before();
    const text = (input: EncoderInput): string => (typeof input === 'string' ? input : input.query);
    const outcomes = inputs.map(
      (input): EncodeOutcome =>
        this.#fail(input) ?? {
          ok: true,
          tokens: text(input).length,
          truncated: text(input).endsWith('…'),
          cut: text(input).endsWith('…') ? 'tail' : 'nothing',
        },
    );
    const vectors = Float32Array.from(inputs, (input, i) => (outcomes[i]!.ok ? Number.parseFloat(text(input)) : 0));
    return { vectors, outcomes, waitedMs: 0 };
  }

  async close(): Promise<void> {
    this.#log.push('close encoder');
  }
}

/** Rows 0 to 4 by default. A query of value v finds the rows from v on; the score of row r is v + r / 10, plus `offset`. */
export class FakeIndex implements VectorIndex {
  readonly dimension = 1;
  readonly rows: number;
  readonly metric = 'inner-product';
  readonly residentBytes = 0;
  readonly touchedBytes = 0;
  readonly mappedBytes = 0;
  readonly load = NO_SEARCH_LOAD;
  readonly requests: SearchRequest[] = [];
  readonly #log: Log;
  readonly #before: Before;
  readonly #score: (query: number, row: number) => number;
  readonly #exact: boolean;

  constructor(
    log: Log,
    options: { rows?: number; before?: Before; score?: (query: number, row: number) => number; exact?: boolean } = {},
  ) {
    this.#log = log;
    this.rows = options.rows ?? 5;
    this.#before = options.before ?? (() => undefined);
    this.#score = options.score ?? ((query, row) => query + row / 10);
    this.#exact = options.exact ?? true;
  }

  async search(request: SearchRequest): Promise<SearchResult> {
    const { queries, count, k } = request;
    this.#log.push(`search ${count} × ${k}`);
    this.requests.push(request);
    await this.#before();
    const counts = new Uint32Array(count);
    const rows = new Float64Array(count * k).fill(-1);
    const scores = new Float64Array(count * k);
    for (let q = 0; q < count; q++) {
      for (let row = queries[q]!; row < this.rows && counts[q]! < k; row++) {
        rows[q * k + counts[q]!] = row;
        scores[q * k + counts[q]!] = this.#score(queries[q]!, row);
        counts[q]!++;
      }
    }
    return { counts, rows, scores, exact: this.#exact, certificate: null, waitedMs: 0 };
  }

  async close(): Promise<void> {
    this.#log.push('close index');
  }
}

/** The document of row r is `{"row":r}` by default. */
export class FakeStore implements PassageStore {
  readonly rows: number;
  readonly failure = undefined;
  readonly #log: Log;
  readonly #before: Before;
  readonly #document: (row: number) => string;

  constructor(log: Log, options: { rows?: number; before?: Before; document?: (row: number) => string } = {}) {
    this.#log = log;
    this.rows = options.rows ?? 5;
    this.#before = options.before ?? (() => undefined);
    this.#document = options.document ?? ((row) => `{"row":${row}}`);
  }

  async getMany(rows: ArrayLike<number>): Promise<string[]> {
    this.#log.push(`fetch ${Array.from(rows).join(',')}`);
    await this.#before();
    return Array.from(rows, this.#document);
  }

  async idsOf(rows: ArrayLike<number>): Promise<string[]> {
    this.#log.push(`ids ${Array.from(rows).join(',')}`);
    await this.#before();
    return Array.from(rows, (row) => `p${row}`);
  }

  async find(_by: string, keys: readonly string[], _limit?: number): Promise<number[][]> {
    this.#log.push(`find ${keys.join(',')}`);
    await this.#before();
    const documents = Array.from(
      { length: this.rows },
      (_, row) => JSON.parse(this.#document(row)) as { id?: unknown },
    );
    if (documents.every(({ id }) => id === undefined)) return keys.map((key) => [Number.parseInt(key, 10)]);
    return keys.map((key) => documents.flatMap(({ id }, row) => (String(id) === key ? [row] : [])));
  }

  async close(): Promise<void> {
    this.#log.push('close passages');
  }
}
