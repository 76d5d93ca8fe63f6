import { throwIfCancelled } from '../../base/abort.ts';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import type { ModelIdentity } from '../identity/model-identity.ts';
import { normalizeL2 } from '../inference/pooling.ts';
import {
  composeText,
  contextOf,
  type EncodeOptions,
  type EncodeOutcome,
  type EncodeResult,
  type EncoderInput,
  type EncoderLoad,
  type TextEncoder,
} from '../text-encoder.ts';
import { type EndpointClient, isRefusedContent, type SentSettings } from './endpoint-client.ts';
import { isUnitVector, lengthOfVector } from './endpoint-identity.ts';
import { EndpointLoad } from './endpoint-load.ts';
import type { EndpointWatch } from './endpoint-watch.ts';
import { divideTexts, type RequestSize } from './request-sizes.ts';

/** Characters beyond this are not sent, as a model of a folder does not read them. */
const MAX_CHARACTERS = 200_000;

/** One request's part of the result. */
interface Part {
  readonly start: number;
  readonly tokens: number | null;
}

/** A float32 vector whose length differs from 1 by less was normalised, and keeps its bits. */
const NORMALIZED = 1e-5;

/**
 * An encoder behind HTTP. Texts go in requests of a limited size; a request that fails fails its own texts alone, and one that is
 * refused is divided until the refused text is alone. The endpoint tokenizes, truncates and pools. Its vectors may depend on the
 * batch in their last bits.
 */
export class EndpointEncoder implements TextEncoder {
  readonly identity: ModelIdentity;
  readonly #client: EndpointClient;
  readonly #settings: SentSettings;
  readonly #size: RequestSize;
  readonly #watch: EndpointWatch;
  readonly #isUnit: boolean;
  readonly #load = new EndpointLoad();
  readonly #closed = new AbortController();
  readonly #endWatch: () => void;
  readonly #release: () => void;

  /** See `openEndpoint`. */
  constructor(
    identity: ModelIdentity,
    how: {
      readonly client: EndpointClient;
      /** Gives the client back. */
      readonly release: () => void;
      readonly settings: SentSettings;
      readonly size: RequestSize;
      readonly watch: EndpointWatch;
      /** Whether the endpoint's vectors have length 1. */
      readonly isUnit: boolean;
    },
  ) {
    this.identity = identity;
    this.#client = how.client;
    this.#release = how.release;
    this.#endWatch = how.client.onLost((server) => how.watch.lost(server));
    this.#settings = how.settings;
    this.#size = how.size;
    this.#watch = how.watch;
    this.#isUnit = how.isUnit;
  }

  get dimension(): number {
    return this.identity.dimension;
  }

  /** For twice as many requests as run at a time, so that requests wait for the endpoint and not the endpoint for requests. */
  busyCalls(texts: number): number {
    return Math.ceil((2 * this.#client.concurrency) / Math.ceil(texts / this.#size.texts));
  }

  get separator(): string | null {
    return this.identity.endpoint!.separator;
  }

  get failure(): TrawlError | undefined {
    return this.#watch.failure;
  }

  get load(): EncoderLoad {
    return this.#load.load;
  }

  async encode(inputs: readonly EncoderInput[], options: EncodeOptions): Promise<EncodeResult> {
    throwIfCancelled(options.signal);
    if (this.#closed.signal.aborted) throw new TrawlError('CANCELLED', 'The encoder has been closed.');
    if (this.failure !== undefined) throw this.failure;
    this.#watch.used();
    const begun = performance.now();
    const signal = AbortSignal.any([this.#closed.signal, ...(options.signal === undefined ? [] : [options.signal])]);
    let firstStart: number | undefined;
    const vectors = new Float32Array(inputs.length * this.dimension);
    const outcomes = new Array<EncodeOutcome>(inputs.length);
    const composed = inputs.map((input) => composeText(input, '', this.separator));
    const texts = composed.map((text) => text.slice(0, MAX_CHARACTERS));
    const wanted = texts.flatMap((_, i) => {
      const refusal = refuseTruncation(inputs[i]!, options);
      if (refusal !== undefined) outcomes[i] = { ok: false, error: refusal };
      return refusal === undefined ? [i] : [];
    });
    const starts = divideTexts(
      wanted.map((i) => texts[i]!),
      this.#size,
    );
    const onStart = (): void => {
      firstStart ??= performance.now();
    };
    const done = (at: number, vector: Float32Array, tokens: number | null): void => {
      const row = this.#ownVector(vector);
      vectors.set(row, at * this.dimension);
      const limit = this.identity.maxTokens[options.inputType];
      const isCut = texts[at]!.length < composed[at]!.length || this.#wasTruncated(tokens, limit);
      outcomes[at] = { ok: true, tokens, truncated: isCut, cut: isCut ? 'tail' : 'nothing' };
    };
    const parts = await Promise.all(
      starts.map((start, i) => {
        const rows = wanted.slice(start, starts[i + 1] ?? wanted.length);
        return this.#embed(
          rows,
          texts,
          { ...options, signal },
          {
            done,
            failed: (at, error) => (outcomes[at] = { ok: false, error }),
            onStart,
          },
        );
      }),
    );
    const tokens = parts.flat().every((part) => part.tokens !== null)
      ? parts.flat().reduce((sum, part) => sum + part.tokens!, 0)
      : undefined;
    return {
      vectors,
      outcomes,
      tokens,
      waitedMs: firstStart === undefined ? 0 : firstStart - begun,
    };
  }

  async check(signal?: AbortSignal): Promise<void> {
    await this.#watch.check(signal);
  }

  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#watch.close();
    this.#endWatch();
    this.#release();
  }

  /** Embeds the texts of `rows` in one request, or in halves if it is refused. Throws CANCELLED and MODEL_MISMATCH alone. */
  async #embed(
    rows: readonly number[],
    texts: readonly string[],
    options: EncodeOptions,
    report: {
      readonly done: (at: number, vector: Float32Array, tokens: number | null) => void;
      readonly failed: (at: number, error: TrawlError) => void;
      readonly onStart: () => void;
    },
  ): Promise<Part[]> {
    const count = this.#load.request(rows.length);
    try {
      const { vectors, tokens, server } = await this.#client.embed(
        rows.map((row) => texts[row]!),
        options.inputType,
        this.#settings,
        {
          signal: options.signal,
          onStart() {
            count.start();
            report.onStart();
          },
        },
      );
      await this.#watch.trusted(server);
      for (const [i, row] of rows.entries()) {
        const vector = this.#checkedLength(vectors[i]!);
        if (vector instanceof TrawlError) report.failed(row, vector);
        else report.done(row, vector, rows.length === 1 ? tokens : null);
      }
      return [{ start: rows[0]!, tokens }];
    } catch (error) {
      const failure = asTrawlError(error);
      if (/^(CANCELLED|INTERNAL|MODEL_MISMATCH)$/.test(failure.code)) throw failure;
      if (!isRefusedContent(failure) || rows.length === 1) {
        for (const row of rows) report.failed(row, failure);
        return [];
      }
      count.end('divided');
      const middle = Math.ceil(rows.length / 2);
      const halves = [rows.slice(0, middle), rows.slice(middle)];
      return (await Promise.all(halves.map((half) => this.#embed(half, texts, options, report)))).flat();
    } finally {
      count.end();
    }
  }

  #checkedLength(vector: Float32Array | TrawlError): Float32Array | TrawlError {
    if (!this.#isUnit || vector instanceof TrawlError || isUnitVector(vector)) return vector;
    return new TrawlError(
      'ENDPOINT_FAILED',
      `The endpoint's model gives this text no usable vector: it has length ${lengthOfVector(vector).toFixed(3)}; the endpoint's vectors ` +
        'have length 1. Usual causes are an overflow of float16, which bfloat16 or float32 (--dtype) avoids, and an empty text.',
    );
  }

  /** The first values of a vector, normalised if the identity says so. */
  #ownVector(vector: Float32Array): Float32Array {
    const { dimension, normalize, fullDimension } = this.identity;
    const own = fullDimension === undefined ? vector : vector.slice(0, dimension);
    return normalize && Math.abs(lengthOfVector(own) - 1) > NORMALIZED ? normalizeL2(own) : own;
  }

  #wasTruncated(tokens: number | null, limit: number | null): boolean {
    return tokens !== null && limit !== null && tokens >= limit && this.identity.endpoint!.overlong !== 'refused';
  }
}

/** Only a tokenizer could keep the query and shorten the question. */
function refuseTruncation(input: EncoderInput, { truncate }: EncodeOptions): TrawlError | undefined {
  if (truncate !== 'question' || contextOf(input).length === 0) return undefined;
  return new TrawlError(
    'NOT_SUPPORTED',
    'truncate "question" needs the tokenizer of the model, but the encoder is an endpoint, which truncates the end. Use "tail".',
  );
}
