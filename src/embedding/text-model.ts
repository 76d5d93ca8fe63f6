import { bug, TrawlError } from '../errors.ts';
import { valuesPerInput, type WorkInput } from './encoder-messages.ts';
import { tryGrouping } from './grouping-trial.ts';
import type { ModelFolder } from './model-folder.ts';
import { type GraphOutput, OnnxSession, type OnnxSessionOptions } from './onnx-session.ts';
import { firstNonFinite, normalizeL2, pool } from './pooling.ts';
import type { TextKind, TruncateSide } from './text-encoder.ts';
import { tokenizePair } from './text-pair.ts';
import { type TokenBatch, tokenBatch } from './token-batch.ts';
import { TextTokenizer } from './tokenizer.ts';
import { type TokenizedText, tokenizeInput } from './truncation.ts';

/** Tokenizer and graph on the calling thread, which they block: what a worker runs. */
export class TextModel {
  readonly #model: ModelFolder;
  readonly #tokenizer: TextTokenizer;
  readonly #session: OnnxSession;
  #groups: boolean | null = null;

  private constructor(model: ModelFolder, tokenizer: TextTokenizer, session: OnnxSession) {
    this.#model = model;
    this.#tokenizer = tokenizer;
    this.#session = session;
  }

  /** Loads tokenizer and graph and tries them on one text. Throws MODEL_INVALID, DEVICE_UNAVAILABLE. */
  static async open(
    model: ModelFolder,
    device: Pick<OnnxSessionOptions, 'cudaDevice' | 'shareWeights'>,
  ): Promise<TextModel> {
    const tokenizer = await TextTokenizer.load(model.tokenizerPath);
    const use = model.kind === 'cross-encoder' ? 'score' : model.identity.pooling;
    const session = await OnnxSession.open(model.graphPath, { use, outputName: model.graphOutput, ...device });
    const opened = new TextModel(model, tokenizer, session);
    try {
      await opened.#checkGraph();
    } catch (error) {
      await session.close();
      throw error;
    }
    return opened;
  }

  /** See `TextEncoder.separator`. */
  get separator(): string | null {
    return this.#tokenizer.separator?.text ?? null;
  }

  /** What the graph gets to see of an input. */
  tokenize(input: WorkInput, kind: TextKind, truncate: TruncateSide): TokenizedText {
    const { prefixes, maxTokens } = this.#model.identity;
    if (typeof input !== 'string' && 'passage' in input) return tokenizePair(this.#tokenizer, input, maxTokens.passage);
    const limits = { prefix: prefixes[kind], maxTokens: maxTokens[kind], truncate };
    return tokenizeInput(this.#tokenizer, input, limits);
  }

  /** What `canGroup` found; null before. */
  get groups(): boolean | null {
    return this.#groups;
  }

  /**
   * Whether texts of equal length give the same bits together as alone; tried when asked for the first time, each run
   * within `guard`. Not during `run`.
   */
  async canGroup(guard: <T>(work: () => Promise<T>) => Promise<T> = (work) => work()): Promise<boolean> {
    this.#groups ??= await tryGrouping(this.#tokenizer, (texts) => guard(() => this.run(texts, texts[0]!.ids.length)));
    return this.#groups;
  }

  /**
   * A vector per text, or a score in one of length 1; all of one run, padded to `length`. A text without any token (where
   * the tokenizer adds none) has the zero vector and must be alone. Throws ENCODING_FAILED.
   */
  async run(texts: readonly TokenizedText[], length: number): Promise<Float32Array[]> {
    if (length === 0) return texts.map(() => new Float32Array(valuesPerInput(this.#model)));
    const batch = tokenBatch(texts, length);
    const output = await this.#session.run(batch);
    return texts.map((text, row) => this.#vectorOf(output, batch, row, text.ids.length));
  }

  /** Not during `run`. */
  async close(): Promise<void> {
    await this.#session.close();
  }

  #vectorOf(output: GraphOutput, batch: TokenBatch, row: number, tokens: number): Float32Array {
    const { kind, identity } = this.#model;
    const isPooled = kind === 'cross-encoder' || identity.pooling === 'pooler' || identity.pooling === 'none';
    const { data, size, width } = rowOf(output, batch, row, isPooled ? 1 : batch.length);
    const pooling = kind === 'cross-encoder' ? 'none' : identity.pooling;
    const vectors = isPooled ? 1 : tokens;
    const whole = pool({ data: data.subarray(0, vectors * width), tokens: vectors, dimension: width }, pooling);
    if (whole.length < valuesPerInput(this.#model) || size === 0) throw bug(`a vector of ${whole.length} values`);
    const vector = whole.length === valuesPerInput(this.#model) ? whole : whole.slice(0, valuesPerInput(this.#model));
    // After pooling is early enough: a sum hides neither NaN nor infinity, and there is one row to look at.
    const bad = firstNonFinite(vector);
    if (bad >= 0) {
      throw new TrawlError(
        'ENCODING_FAILED',
        `The model gave ${vector[bad]} in column ${bad} for a text of ${tokens} tokens.`,
        { details: { column: bad, tokens } },
      );
    }
    return kind === 'encoder' && identity.normalize ? normalizeL2(vector) : vector;
  }

  async #checkGraph(): Promise<void> {
    const { graphPath, tokenizerPath, identity, kind } = this.#model;
    const { ids, types } =
      kind === 'cross-encoder'
        ? tokenizePair(
            this.#tokenizer,
            { query: 'a', passage: 'a', truncatePair: 'longest-first' },
            identity.maxTokens.passage,
          )
        : { ids: this.#tokenizer.frame(this.#tokenizer.contentIds('a', 1)), types: undefined };
    const batch = tokenBatch([{ ids, cut: 'nothing', ...(types === undefined ? {} : { types }) }], ids.length);
    let width: number;
    try {
      const isPooled = kind === 'cross-encoder' || identity.pooling === 'pooler' || identity.pooling === 'none';
      width = rowOf(await this.#session.run(batch), batch, 0, isPooled ? 1 : batch.length).width;
    } catch (error) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${graphPath} does not work with ${tokenizerPath}: ${(error as Error).message} ` +
          'The two must come from the same model, and the pooling must fit the graph.',
        { cause: error },
      );
    }
    const expected =
      kind === 'cross-encoder' ? valuesPerInput(this.#model) : (identity.fullDimension ?? identity.dimension);
    if (width !== expected) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${graphPath} gives ${kind === 'cross-encoder' ? `${width} values per pair` : `vectors of ${width} dimensions`}, the ` +
          `description of ${identity.name} says ${expected}. Correct the description, or fetch the graph that belongs to it.`,
        { details: { graph: width, description: expected } },
      );
    }
  }
}

/** One text's part of an output of `vectors` vectors a text; ENCODING_FAILED where the shape is another. */
function rowOf(
  { data, dims }: GraphOutput,
  { rows }: TokenBatch,
  row: number,
  vectors: number,
): { data: Float32Array; size: number; width: number } {
  const width = dims.at(-1) ?? 0;
  const size = vectors * width;
  if (width === 0 || data.length !== rows * size) {
    throw new TrawlError(
      'ENCODING_FAILED',
      `The graph's output has the shape ${dims.join(' × ')} where ${rows} × ${vectors} × dimension was expected.`,
    );
  }
  return { data: data.subarray(row * size, (row + 1) * size), size, width };
}
