import { isDeepStrictEqual } from 'node:util';
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
  type InputType,
  type TextEncoder,
} from '../text-encoder.ts';
import { type EndpointClient, mayBeOneText, type SentSettings } from './endpoint-client.ts';
import { isUnitVector, vectorLength } from './endpoint-identity.ts';
import { EndpointLoad } from './endpoint-load.ts';
import type { EndpointWatch } from './endpoint-watch.ts';

/** Characters beyond this are not sent, as a model of a folder does not read them. */
const MAX_CHARACTERS = 200_000;

/** A float32 vector whose length differs from 1 by less was normalised, and keeps its bits. */
const NORMALIZED = 1e-5;

/** A token of English text has about four characters, and special tokens surround each text. */
const CHARACTERS_PER_TOKEN = 4;
const FRAMING_TOKENS = 2;

interface EndpointEncoderOptions {
  readonly client: EndpointClient;
  readonly release: () => void;
  readonly settings: SentSettings;
  /** Most texts of a request, and most estimated tokens; a longer text goes alone. */
  readonly batch: { readonly texts: number; readonly tokens: number };
  readonly watch: EndpointWatch;
  /** Whether the endpoint's vectors have length 1. */
  readonly isUnit: boolean;
  readonly onWarning: (warning: string) => void;
}

/** One call of `encode`, which its requests fill in. */
interface Call {
  readonly inputType: InputType;
  readonly settings: SentSettings;
  readonly signal: AbortSignal;
  readonly texts: string[];
  /** Texts that are refused, or get no usable vector, alone. */
  readonly refused: number[];
  /** Whether a text is only the beginning of its input. */
  readonly isCut: (text: number) => boolean;
  readonly vectors: Float32Array;
  readonly outcomes: EncodeOutcome[];
  /** Tokens of all requests; undefined if the endpoint did not count the tokens of one. */
  tokens: number | undefined;
  /** `performance.now()` when the first request began. */
  startedAt?: number;
}

/**
 * An encoder behind HTTP. Texts go in requests of a limited size; a request that fails fails its own texts alone, and one that may be
 * refused for one of its texts is divided until this text is alone. The endpoint tokenizes, truncates and pools. Its vectors may depend on the
 * batch in their last bits.
 */
export class EndpointEncoder implements TextEncoder {
  readonly identity: ModelIdentity;
  readonly #options: EndpointEncoderOptions;
  readonly #load = new EndpointLoad();
  readonly #closed = new AbortController();
  readonly #endWatch: () => void;
  /** Most texts of a request: fewer once a larger request has been refused for its size. */
  #mostTexts: number;
  #hasWarned = false;

  constructor(identity: ModelIdentity, options: EndpointEncoderOptions) {
    this.identity = identity;
    this.#options = options;
    this.#mostTexts = options.batch.texts;
    this.#endWatch = options.client.onLost((server) => options.watch.lost(server));
  }

  get dimension(): number {
    return this.identity.dimension;
  }

  /** For twice as many requests as run at a time, so that requests wait for the endpoint and not the endpoint for requests. */
  busyCalls(texts: number): number {
    return Math.ceil((2 * this.#options.client.concurrency) / Math.ceil(texts / this.#mostTexts));
  }

  get separator(): string | null {
    return this.identity.endpoint!.separator;
  }

  get failure(): TrawlError | undefined {
    return this.#options.watch.failure;
  }

  get load(): EncoderLoad {
    return this.#load.load;
  }

  async encode(inputs: readonly EncoderInput[], options: EncodeOptions): Promise<EncodeResult> {
    const { inputType, signal } = options;
    throwIfCancelled(signal);
    if (this.#closed.signal.aborted) throw new TrawlError('CANCELLED', 'The encoder has been closed.');
    if (this.failure !== undefined) throw this.failure;
    this.#options.watch.used();
    const begun = performance.now();
    const composed = inputs.map((input) => composeText(input, '', this.separator));
    const isPlain = inputType === 'plain';
    const { settings } = this.#options;
    const call: Call = {
      inputType: isPlain ? 'passage' : inputType,
      settings: isPlain ? { ...settings, prefixes: { query: '', passage: '' } } : settings,
      signal: AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])]),
      texts: composed.map((text) => text.slice(0, MAX_CHARACTERS)),
      refused: [],
      isCut: (text) => composed[text]!.length > MAX_CHARACTERS,
      vectors: new Float32Array(inputs.length * this.dimension),
      outcomes: new Array<EncodeOutcome>(inputs.length),
      tokens: 0,
    };
    const sent = [...inputs.keys()].filter((text) => {
      const refusal = refusalOf(inputs[text]!, options, settings);
      if (refusal !== undefined) call.outcomes[text] = { ok: false, error: refusal };
      return refusal === undefined;
    });
    const embed = (some: readonly number[]) =>
      Promise.all(this.#divide(some, call.texts).map((texts) => this.#embed(texts, call)));
    await embed(sent);
    await embed(this.#spacesForEmpty(call));
    const { vectors, outcomes, tokens, startedAt = begun } = call;
    return { vectors, outcomes, tokens, waitedMs: startedAt - begun };
  }

  check(signal?: AbortSignal): Promise<void> {
    return this.#options.watch.check(signal);
  }

  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#options.watch.close();
    this.#endWatch();
    this.#options.release();
  }

  /**
   * Makes a space of each text that is empty and was refused, and returns their numbers. OpenAI's servers refuse an empty text, and take
   * a space, which most tokenizers drop.
   */
  #spacesForEmpty(call: Call): number[] {
    const isEmpty = (text: number): boolean =>
      call.texts[text]!.trim() === '' && call.settings.prefixes[call.inputType] === '';
    const empty = call.refused.filter(isEmpty);
    for (const text of empty) call.texts[text] = ' ';
    if (empty.length > 0 && !this.#hasWarned) {
      this.#hasWarned = true;
      this.#options.onWarning('The endpoint refuses empty texts. They are embedded as a space.');
    }
    return empty;
  }

  #divide(sent: readonly number[], texts: readonly string[]): number[][] {
    const { batch } = this.#options;
    const requests: number[][] = [];
    let tokens = 0;
    for (const text of sent) {
      const own = FRAMING_TOKENS + Math.ceil(texts[text]!.length / CHARACTERS_PER_TOKEN);
      const last = requests.at(-1);
      const fits = last !== undefined && last.length < this.#mostTexts && tokens + own <= batch.tokens;
      if (fits) last.push(text);
      else requests.push([text]);
      tokens = own + (fits ? tokens : 0);
    }
    return requests;
  }

  /**
   * Embeds texts of a call in one request, or in halves if it is refused. Returns whether the endpoint took the request as it was. Throws
   * CANCELLED and MODEL_MISMATCH alone.
   */
  async #embed(texts: readonly number[], call: Call): Promise<boolean> {
    const { client, watch } = this.#options;
    const count = this.#load.request(texts.length);
    const onStart = (): void => {
      count.start();
      call.startedAt ??= performance.now();
    };
    try {
      const contents = texts.map((text) => call.texts[text]!);
      const { settings, signal } = call;
      const { vectors, tokens, server } = await client.embed(contents, call.inputType, settings, { signal, onStart });
      await watch.trusted(server);
      call.tokens = tokens === null || call.tokens === undefined ? undefined : call.tokens + tokens;
      for (const [i, text] of texts.entries())
        this.#accept(call, text, vectors[i]!, texts.length === 1 ? tokens : null);
      return true;
    } catch (error) {
      const failure = asTrawlError(error);
      if (/^(CANCELLED|INTERNAL|MODEL_MISMATCH)$/.test(failure.code)) throw failure;
      const mayDivide = mayBeOneText(failure);
      if (!mayDivide || texts.length === 1) {
        for (const text of texts) call.outcomes[text] = { ok: false, error: failure, isOfText: mayDivide };
        if (mayDivide) call.refused.push(...texts);
        return false;
      }
      count.end('divided');
      const middle = Math.ceil(texts.length / 2);
      const halves = [texts.slice(0, middle), texts.slice(middle)];
      const taken = await Promise.all(halves.map((half) => this.#embed(half, call)));
      const isTooLarge = failure.code === 'ENDPOINT_REFUSED' && taken.every(Boolean);
      if (isTooLarge) this.#mostTexts = Math.min(this.#mostTexts, middle);
      return false;
    } finally {
      count.end();
    }
  }

  /** Stores the endpoint's vector of a text: its first values, normalised if the identity says so. */
  #accept(call: Call, text: number, vector: Float32Array | TrawlError, tokens: number | null): void {
    const { dimension, normalize, maxTokens, endpoint } = this.identity;
    const error = vector instanceof TrawlError ? vector : this.#lengthFault(vector);
    if (error !== undefined) {
      call.outcomes[text] = { ok: false, error, isOfText: true };
      call.refused.push(text);
      return;
    }
    const own = (vector as Float32Array).slice(0, dimension);
    if (normalize && Math.abs(vectorLength(own) - 1) > NORMALIZED) normalizeL2(own);
    call.vectors.set(own, text * dimension);
    const limit = maxTokens[call.inputType];
    const reachesLimit = tokens !== null && limit !== null && tokens >= limit && endpoint!.overlong !== 'refused';
    const truncated = call.isCut(text) || reachesLimit;
    call.outcomes[text] = { ok: true, tokens, truncated, cut: truncated ? 'tail' : 'nothing' };
  }

  #lengthFault(vector: Float32Array): TrawlError | undefined {
    if (!this.#options.isUnit || isUnitVector(vector)) return undefined;
    const length = `length ${vectorLength(vector).toFixed(3)}`;
    return new TrawlError(
      'ENDPOINT_FAILED',
      `The endpoint's model gives this text no usable vector: it has ${length}; the endpoint's vectors ` +
        'have length 1. Usual causes are an overflow of float16, which bfloat16 or float32 (--dtype) avoids, and an empty text.',
      { details: { fault: `it has ${length} in place of 1` } },
    );
  }
}

/** Only a tokenizer could keep the query and shorten the question. */
function refusalOf(
  input: EncoderInput,
  { inputType, truncate }: EncodeOptions,
  { added }: SentSettings,
): TrawlError | undefined {
  if (inputType === 'plain' && !isDeepStrictEqual(added.query, added.passage)) {
    return new TrawlError(
      'NOT_SUPPORTED',
      'The endpoint of this encoder embeds a text as a query or as a passage. Say which: "query" or "passage".',
    );
  }
  if (truncate !== 'question' || contextOf(input).length === 0) return undefined;
  return new TrawlError(
    'NOT_SUPPORTED',
    'truncate "question" needs the tokenizer of the model, but the encoder is an endpoint, which truncates the end. Use "tail".',
  );
}
