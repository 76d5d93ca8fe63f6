import { TrawlError } from '../errors.ts';
import type { ModelIdentity } from '../manifest/model-identity.ts';
import type { ModelFolder } from './model-folder.ts';
import { OnnxSession } from './onnx-session.ts';
import { firstNonFinite, normalizeL2, pool } from './pooling.ts';
import type { Cut, EncoderInput, TextKind, TruncateSide } from './text-encoder.ts';
import { TextTokenizer } from './tokenizer.ts';
import { tokenizeInput } from './truncation.ts';

export interface EncodedText {
  /** Length `dimension`. */
  readonly vector: Float32Array;
  /** Tokens embedded, special tokens included. */
  readonly tokens: number;
  readonly cut: Cut;
}

/** One text in, one vector out, on the calling thread, which it blocks: what a worker runs. */
export class SingleTextEncoder {
  readonly #identity: ModelIdentity;
  readonly #tokenizer: TextTokenizer;
  readonly #session: OnnxSession;

  private constructor(identity: ModelIdentity, tokenizer: TextTokenizer, session: OnnxSession) {
    this.#identity = identity;
    this.#tokenizer = tokenizer;
    this.#session = session;
  }

  /** Loads tokenizer and graph and tries them on one text. Throws MODEL_INVALID. */
  static async open(model: ModelFolder): Promise<SingleTextEncoder> {
    const tokenizer = await TextTokenizer.load(model.tokenizerPath);
    const session = await OnnxSession.open(model.graphPath, model.identity.pooling, model.graphOutput);
    const encoder = new SingleTextEncoder(model.identity, tokenizer, session);
    await encoder.#checkGraph(model);
    return encoder;
  }

  /** A text without any token (where the tokenizer adds none) has the zero vector. Throws ENCODING_FAILED. */
  async encode(input: EncoderInput, kind: TextKind, truncate: TruncateSide): Promise<EncodedText> {
    const { prefixes, maxTokens, pooling, normalize, dimension } = this.#identity;
    const limits = { prefix: prefixes[kind], maxTokens: maxTokens[kind], truncate };
    const { ids, cut } = tokenizeInput(this.#tokenizer, input, limits);
    if (ids.length === 0) return { vector: new Float32Array(dimension), tokens: 0, cut };
    const vector = pool(await this.#session.run(ids), pooling);
    // After pooling is early enough: a sum hides neither NaN nor infinity, and there is one row to look at.
    const bad = firstNonFinite(vector);
    if (bad >= 0) {
      throw new TrawlError(
        'ENCODING_FAILED',
        `The model gave ${vector[bad]} in column ${bad} for a text of ${ids.length} tokens.`,
        {
          details: { column: bad, tokens: ids.length },
        },
      );
    }
    return { vector: normalize ? normalizeL2(vector) : vector, tokens: ids.length, cut };
  }

  get separator(): string | null {
    return this.#tokenizer.separator?.text ?? null;
  }

  /** Not during `encode`. */
  async close(): Promise<void> {
    await this.#session.close();
  }

  async #checkGraph(model: ModelFolder): Promise<void> {
    const ids = this.#tokenizer.frame(this.#tokenizer.contentIds('a', 1));
    let dimension: number;
    try {
      dimension = (await this.#session.run(ids)).dimension;
    } catch (error) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${model.graphPath} does not work with ${model.tokenizerPath}: ${(error as Error).message} ` +
          'The two must come from the same model, and the pooling must fit the graph.',
        { cause: error },
      );
    }
    if (dimension !== model.identity.dimension) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${model.graphPath} gives vectors of ${dimension} dimensions, the description of ${model.identity.name} says ` +
          `${model.identity.dimension}. Correct the description, or fetch the graph that belongs to it.`,
        { details: { graph: dimension, description: model.identity.dimension } },
      );
    }
  }
}
