import { TrawlError } from '../../errors.ts';
import type { EmbeddingApi } from '../../manifest/endpoint-record.ts';

/** The vectors of one reply, in the order of the texts. */
export interface EmbeddingReply {
  readonly vectors: readonly Float32Array[];
  /** Tokens of all texts, prefixes and special tokens included; null if the server does not count them. */
  readonly tokens: number | null;
}

export interface EmbeddingRequest {
  readonly texts: readonly string[];
  readonly model: string | null;
  /** Whether TEI's `/embed` is to normalise. OpenAI's format has no such setting. */
  readonly normalize: boolean;
  /** Members that are added, or that replace others. */
  readonly added: Readonly<Record<string, unknown>>;
}

/**
 * The body of a request. OpenAI's format asks for base64, which is smaller and quicker to read than numbers; servers that ignore it
 * send numbers, so that the type of a vector in the reply decides.
 */
export function embeddingBody(api: EmbeddingApi, { texts, model, normalize, added }: EmbeddingRequest): string {
  const body =
    api === 'tei'
      ? { inputs: texts, normalize, truncate: true }
      : { input: texts, ...(model === null ? {} : { model }), encoding_format: 'base64' };
  return JSON.stringify({ ...body, ...added });
}

/**
 * The vectors in a reply, in the order of the texts, which OpenAI's format gives by `index`.
 *
 * @param expected number of texts, and values of each vector (null: all the same).
 * @throws TrawlError ENDPOINT_FAILED for a reply without exactly one finite vector for each text.
 */
export function readEmbeddings(
  api: EmbeddingApi,
  reply: unknown,
  expected: { readonly texts: number; readonly dimension: number | null },
): EmbeddingReply {
  const { texts } = expected;
  const list = api === 'tei' ? reply : (reply as { data?: unknown } | null)?.data;
  if (!Array.isArray(list)) throw unusable(api === 'tei' ? 'it is not a list' : 'it has no list `data`');
  if (list.length !== texts) throw unusable(`it has ${list.length} vectors for ${texts} texts`);
  const vectors = new Array<Float32Array | undefined>(texts).fill(undefined);
  let { dimension } = expected;
  for (const [i, item] of list.entries()) {
    const { index, embedding } = api === 'tei' ? { index: i, embedding: item as unknown } : openaiItem(item);
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= texts) {
      throw unusable(`it has the index ${JSON.stringify(index) ?? 'undefined'}; expected 0 to ${texts - 1}`);
    }
    const at = index as number;
    if (vectors[at] !== undefined) throw unusable(`it has the index ${at} twice`);
    const vector = readVector(embedding, at);
    dimension ??= vector.length;
    if (vector.length !== dimension) {
      throw unusable(`the vector of text ${at} has ${vector.length} values; expected ${dimension}`);
    }
    const bad = vector.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0) throw unusable(`the vector of text ${at} has ${vector[bad]} in column ${bad}`);
    vectors[at] = vector;
  }
  const counted: unknown = (reply as { usage?: { prompt_tokens?: unknown } }).usage?.prompt_tokens;
  const tokens = Number.isSafeInteger(counted) && (counted as number) > 0 ? (counted as number) : null;
  return { vectors: vectors as Float32Array[], tokens };
}

function openaiItem(item: unknown): { index: unknown; embedding: unknown } {
  const { index, embedding } = (item ?? {}) as { index?: unknown; embedding?: unknown };
  return { index, embedding };
}

function readVector(embedding: unknown, text: number): Float32Array {
  if (typeof embedding === 'string') {
    const bytes = Buffer.from(embedding, 'base64');
    if (
      bytes.length === 0 ||
      bytes.length % 4 !== 0 ||
      bytes.length !== Math.floor((embedding.replace(/=+$/, '').length * 3) / 4)
    ) {
      throw unusable(`the vector of text ${text} is not base64 of float32 values`);
    }
    return Float32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
  }
  if (!Array.isArray(embedding) || embedding.length === 0) throw unusable(`the vector of text ${text} is missing`);
  if (Array.isArray(embedding[0])) {
    throw unusable(`text ${text} has a list of vectors: a model of late interaction, which has one vector per token`);
  }
  if (!embedding.every((value) => typeof value === 'number')) {
    throw unusable(`the vector of text ${text} has a value that is no number`);
  }
  return Float32Array.from(embedding as number[]);
}

function unusable(reason: string): TrawlError {
  return new TrawlError(
    'ENDPOINT_FAILED',
    `The reply of the encoder's endpoint is unusable: ${reason}. Check its address and --endpoint-api.`,
  );
}
