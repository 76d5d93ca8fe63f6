import { asTrawlError, bug, TrawlError } from '../../base/errors.ts';
import { firstNonFinite } from '../../engine/typed-arrays.ts';
import { invalidModel } from '../model/json-file.ts';
import type { ModelFolder } from '../model/model-folder.ts';
import { type QueryAndPassage, tokenizeInTemplate, tokenizePair, type WorkInput } from '../tokenizer/text-pair.ts';
import { TextTokenizer } from '../tokenizer/tokenizer.ts';
import { type TokenizedText, type TokenizeOptions, tokenizeInput } from '../tokenizer/truncation.ts';
import { cudaFull } from './cuda-libraries.ts';
import { canGroupTexts } from './grouping-trial.ts';
import { openNativeSession } from './native-session.ts';
import { type GraphOutput, type OnnxSessionOptions, openOnnxSession, type Session } from './onnx-session.ts';
import { normalizeL2, pool, truncated, valuesPerInput } from './pooling.ts';
import { type TokenBatch, tokenBatch } from './token-batch.ts';

const PADDING_TRIED = 32;
/** Distance of two vectors of one text as a share of their length. float16 and int8 graphs round padded batches otherwise. */
const PADDING_TOLERANCE = 0.1;

interface TextModelOptions extends Pick<OnnxSessionOptions, 'cudaDevice' | 'shareWeights'> {
  /** Whether texts will run in padded batches; then the graph must give a padded text the same vector. */
  readonly padsTexts: boolean;
}

/** Tokenizer and graph of a model. They block the calling thread, so this class runs in worker threads. */
export class TextModel {
  readonly #model: ModelFolder;
  readonly #tokenizer: TextTokenizer;
  readonly #session: Session;
  /** Result of `tryGrouping`; null before its first call. */
  canGroup: boolean | null = null;

  private constructor(model: ModelFolder, tokenizer: TextTokenizer, session: Session) {
    this.#model = model;
    this.#tokenizer = tokenizer;
    this.#session = session;
  }

  /** Loads tokenizer and graph, and checks them with one text. Throws MODEL_INVALID, DEVICE_UNAVAILABLE or ENGINE_MISSING. */
  static async open(model: ModelFolder, options: TextModelOptions): Promise<TextModel> {
    const { cudaDevice, shareWeights, padsTexts } = options;
    const { graphPath, externalData, enginePrecision, graphOutput: outputName } = model;
    const tokenizer = await TextTokenizer.load(model.tokenizerPath);
    const use = model.kind === 'cross-encoder' ? 'score' : model.identity.pooling;
    const session =
      enginePrecision === undefined
        ? await openOnnxSession(graphPath, {
            use,
            outputName,
            externalData,
            poolsInGraph: padsTexts,
            cudaDevice,
            shareWeights,
          })
        : openNativeSession(graphPath, enginePrecision);
    const opened = new TextModel(model, tokenizer, session);
    try {
      await opened.#checkGraph(cudaDevice);
      if (padsTexts) await opened.#checkPadding();
    } catch (error) {
      await session.close();
      throw error;
    }
    return opened;
  }

  get separator(): string | null {
    return this.#tokenizer.separator?.text ?? null;
  }

  tokenize(input: WorkInput, options: TokenizeOptions): TokenizedText {
    return typeof input !== 'string' && 'passage' in input
      ? this.#tokenizePair(input, options.maxTokens)
      : tokenizeInput(this.#tokenizer, input, options);
  }

  #tokenizePair(pair: QueryAndPassage, maxTokens: number): TokenizedText {
    const { pairTemplate } = this.#model;
    return pairTemplate === undefined
      ? tokenizePair(this.#tokenizer, pair, maxTokens)
      : tokenizeInTemplate(this.#tokenizer, pairTemplate, pair, maxTokens);
  }

  /** Whether texts of equal length get the same bits together as alone: the trial's result. Must not be called during `run`. */
  async tryGrouping(guard: <T>(work: () => Promise<T>) => Promise<T>): Promise<boolean> {
    this.canGroup ??= await canGroupTexts(this.#tokenizer, (texts) =>
      guard(() => this.run(texts, texts[0]!.ids.length)),
    );
    return this.canGroup;
  }

  /**
   * Runs texts in one batch of `rows` rows, padded to `length` tokens. Returns one vector per text, which for a cross-encoder holds the
   * scores. A text without tokens (possible if the tokenizer adds no special tokens) gets the zero vector and must run alone.
   * `threads`: see `ToWorker`. Throws ENCODING_FAILED if the vector of a text has NaN or infinity, else ENCODER_FAILED.
   */
  async run(
    texts: readonly TokenizedText[],
    length: number,
    { rows = texts.length, threads = 1 }: { readonly rows?: number; readonly threads?: number } = {},
  ): Promise<Float32Array[]> {
    if (length === 0) return texts.map(() => new Float32Array(valuesPerInput(this.#model)));
    const batch = tokenBatch(texts, length, rows);
    const output = await this.#session.run(batch, threads);
    return texts.map((text, row) => this.#vectorOf(output, batch, row, text.ids.length));
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  #vectorOf(output: GraphOutput, batch: TokenBatch, row: number, tokens: number): Float32Array {
    const { kind, identity } = this.#model;
    const isPooled = this.#isPooled;
    const all = rowOf(output, batch, row, isPooled ? 1 : batch.length);
    // Without the padding.
    const own = isPooled ? all : all.subarray(0, (all.length / batch.length) * tokens);
    const whole = isPooled ? pool(own, 1, 'none') : pool(own, tokens, identity.pooling);
    const values = valuesPerInput(this.#model);
    if (whole.length < values) throw bug(`a vector of ${whole.length} values`);
    const vector = whole.length === values ? whole : truncated(whole, values, identity.beforeTruncation);
    // Checked after pooling because there is only one row then, and a sum hides neither NaN nor infinity.
    const bad = firstNonFinite(vector);
    if (bad >= 0) {
      throw new TrawlError(
        'ENCODING_FAILED',
        `The model returned ${vector[bad]} in column ${bad} for a text of ${tokens} tokens.`,
        { details: { column: bad, tokens } },
      );
    }
    return kind === 'encoder' && identity.normalize ? normalizeL2(vector) : vector;
  }

  get #isPooled(): boolean {
    const { kind, identity } = this.#model;
    if (this.#session.isPooled) return true;
    // A decoder scores pairs at every token, and the last one has seen both texts.
    if (kind === 'cross-encoder') return identity.pooling !== 'last';
    return identity.pooling === 'pooler' || identity.pooling === 'none';
  }

  async #checkGraph(cudaDevice: number | null): Promise<void> {
    const { graphPath, tokenizerPath, identity, kind } = this.#model;
    const text = this.#shortestText();
    const batch = tokenBatch([text], text.ids.length);
    const vectors = this.#isPooled ? 1 : batch.length;
    let width: number;
    try {
      width = rowOf(await this.#session.run(batch, 1), batch, 0, vectors).length / vectors;
    } catch (error) {
      const { message, details } = asTrawlError(error);
      if (cudaDevice !== null && details.outOfMemory) throw cudaFull(cudaDevice, message, error);
      throw invalidModel(
        `${graphPath} does not work with ${tokenizerPath}: ${message} ` +
          'Both must come from the same model, and the graph must support the pooling.',
        { cause: error },
      );
    }
    const isPair = kind === 'cross-encoder';
    const expected = isPair ? valuesPerInput(this.#model) : (identity.fullDimension ?? identity.dimension);
    if (width === expected) return;
    throw invalidModel(
      `${graphPath} returns ${isPair ? `${width} values per pair` : `vectors of ${width} dimensions`}, but ` +
        `the description of ${identity.name} says ${expected}. Correct the description, or fetch the model's own graph.`,
      { details: { graph: width, description: expected } },
    );
  }

  /** A graph for padding on the left takes the last column, which in a padded text is not the text's own. */
  async #checkPadding(): Promise<void> {
    const text = this.#shortestText();
    const { length } = text.ids;
    if (length === 0) return;
    const [alone] = await this.run([text], length);
    const [padded] = await this.run([text], length + PADDING_TRIED);
    if (isNear(padded!, alone!)) return;
    throw invalidModel(
      `${this.#model.graphPath} gives a text another vector when the batch pads it on the right, as batches on a GPU do. It may be ` +
        'exported for padding on the left and take the last token itself: export it with the output last_hidden_state and state the ' +
        'pooling `last`. Or run it on the CPU (--device cpu), where no text is padded.',
    );
  }

  #shortestText(): TokenizedText {
    if (this.#model.kind === 'encoder') {
      return { ids: this.#tokenizer.frame(this.#tokenizer.contentIds('a', 1)), cut: 'nothing' };
    }
    const pair = { query: 'a', passage: 'a', truncatePair: 'longest-first' } as const;
    return this.#tokenizePair(pair, this.#model.identity.maxTokens.passage);
  }
}

/** Allows 0.01 more than the share, which says little of a score near 0. */
function isNear(a: Float32Array, b: Float32Array): boolean {
  const difference = Math.hypot(...a.map((value, i) => value - b[i]!));
  return difference <= PADDING_TOLERANCE * Math.hypot(...b) + 0.01;
}

/** One text's part of an output with `vectors` rows per text. Throws ENCODER_FAILED for a wrong shape. */
function rowOf({ data, dims }: GraphOutput, { rows }: TokenBatch, row: number, vectors: number): Float32Array {
  const size = vectors * (dims.at(-1) ?? 0);
  if (size > 0 && data.length === rows * size) return data.subarray(row * size, (row + 1) * size);
  throw new TrawlError(
    'ENCODER_FAILED',
    `The graph's output has the shape ${dims.join(' × ')}; expected ${rows} × ${vectors} × dimension.`,
  );
}
