import { floatsOf } from '../../base/base64-vector.ts';
import { TrawlError } from '../../base/errors.ts';
import { firstNonFinite } from '../../engine/typed-arrays.ts';
import type { EmbeddingApi } from '../identity/endpoint-record.ts';

export interface EmbeddingReply {
  /** An error instead of a vector that is missing, not finite, or of another length; the others are not at fault. */
  readonly vectors: readonly (Float32Array | TrawlError)[];
  /** Tokens of all texts, prefixes and special tokens included; null if the server does not count them. */
  readonly tokens: number | null;
}

export interface EmbeddingRequest {
  readonly texts: readonly string[];
  readonly model: string | null;
  /** Whether TEI's `/embed` is to normalise. OpenAI's format has no such setting. */
  readonly normalize: boolean;
  readonly encoding: 'base64' | 'float';
  /** Members that are added, or that replace others. */
  readonly added: Readonly<Record<string, unknown>>;
}

/** The body of a request. Base64 is smaller and quicker to read than numbers, but some servers ignore `encoding_format`. */
export function embeddingBody(
  api: EmbeddingApi,
  { texts, model, normalize, encoding, added }: EmbeddingRequest,
): string {
  const body =
    api === 'tei'
      ? { inputs: texts, normalize, truncate: true }
      : { input: texts, ...(model === null ? {} : { model }), encoding_format: encoding };
  return JSON.stringify({ ...body, ...added });
}

/** TEI counts the tokens of a request in a header. */
const TEI_TOKENS = 'x-compute-tokens';

/**
 * The vectors in a reply, in the order of the texts, which OpenAI's format gives by `index`.
 *
 * @param expected number of texts, and values of each vector (null: all the same).
 * @throws TrawlError ENDPOINT_FAILED for a reply without exactly one entry for each text.
 */
export function readEmbeddings(
  api: EmbeddingApi,
  reply: unknown,
  expected: { readonly texts: number; readonly dimension: number | null },
  headers?: Headers,
): EmbeddingReply {
  const { texts } = expected;
  const list = api === 'tei' ? reply : (reply as { data?: unknown } | null)?.data;
  if (!Array.isArray(list)) throw unusable(api === 'tei' ? 'it is not a list' : 'it has no list `data`');
  if (list.length !== texts) throw unusable(`it has ${list.length} vectors for ${texts} texts`);
  const vectors = new Array<Float32Array | TrawlError | undefined>(texts).fill(undefined);
  let { dimension } = expected;
  for (const [i, item] of list.entries()) {
    const openai = (item ?? {}) as { readonly index?: number; readonly embedding?: unknown };
    const { index: at, embedding } = api === 'tei' ? { index: i, embedding: item as unknown } : openai;
    if (at === undefined || !Number.isInteger(at) || at < 0 || at >= texts) {
      throw unusable(`it has the index ${typeof at === 'number' ? at : typeof at}; expected 0 to ${texts - 1}`);
    }
    if (vectors[at] !== undefined) throw unusable(`it has the index ${at} twice`);
    const vector = readVector(embedding, dimension);
    if (vector instanceof Float32Array) dimension ??= vector.length;
    vectors[at] = vector;
  }
  const { usage } = reply as { usage?: { prompt_tokens?: number } };
  const tokens = api === 'tei' ? Number(headers?.get(TEI_TOKENS)) : usage?.prompt_tokens;
  const counts = Number.isSafeInteger(tokens) && tokens! > 0;
  return { vectors: vectors as (Float32Array | TrawlError)[], tokens: counts ? tokens! : null };
}

function readVector(embedding: unknown, dimension: number | null): Float32Array | TrawlError {
  const vector = typeof embedding === 'string' ? readBase64(embedding) : readNumbers(embedding);
  if (vector instanceof TrawlError) return vector;
  if (dimension !== null && vector.length !== dimension) {
    return unusable(`the vector has ${vector.length} values; expected ${dimension}`);
  }
  const bad = firstNonFinite(vector);
  return bad < 0 ? vector : notFinite(`${vector[bad]} in column ${bad}`);
}

function readBase64(text: string): Float32Array | TrawlError {
  const bytes = Buffer.from(text, 'base64');
  const characters = text.length - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0);
  if (bytes.length === 0 || bytes.length % 4 !== 0 || bytes.length !== Math.floor((characters * 3) / 4)) {
    return unusable('the vector is not base64 of float32 values');
  }
  return floatsOf(bytes);
}

function readNumbers(embedding: unknown): Float32Array | TrawlError {
  if (!Array.isArray(embedding) || embedding.length === 0) return unusable('the vector is missing');
  if (Array.isArray(embedding[0])) {
    return unusable('a text has a list of vectors: a model of late interaction, which has one vector per token');
  }
  const vector = new Float32Array(embedding.length);
  for (let i = 0; i < vector.length; i++) {
    const value: unknown = embedding[i];
    // JSON has no NaN: some servers send null instead.
    if (value === null) return notFinite(`null in column ${i}`);
    if (typeof value !== 'number') return unusable(`the vector has a value that is not a number in column ${i}`);
    vector[i] = value;
  }
  return vector;
}

function notFinite(what: string): TrawlError {
  return new TrawlError(
    'ENDPOINT_FAILED',
    `The endpoint's model gives this text no usable vector: it has ${what}. Usual causes are an overflow of float16, which ` +
      'bfloat16 or float32 (--dtype) avoids, and an empty text.',
    { details: { fault: `it has ${what}` } },
  );
}

function unusable(reason: string): TrawlError {
  return new TrawlError(
    'ENDPOINT_FAILED',
    `The reply of the encoder's endpoint is unusable: ${reason}. Check its address and --endpoint-api.`,
    { details: { fault: reason } },
  );
}
