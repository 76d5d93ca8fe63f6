import { invalidModel, type JsonObject, readJsonFile } from '../model/json-file.ts';
import { type AddedTokenSplit, splitsAtAddedTokens } from './added-tokens.ts';
import { type Framing, openFraming, type PairFraming } from './framing.ts';
import { openNormalizer } from './normalizers.ts';
import { openSplitter, type Splitter } from './splitters.ts';
import { boundaryOf, hasBertWords, idsOfHead, type TextBoundary } from './text-boundary.ts';
import { openModel, type WordEncoder } from './token-model.ts';
import { type AddedToken, readTokenizerFile } from './tokenizer-file.ts';

/**
 * Turns a text into token ids by a tokenizer.json. The ids equal the ids of the reference implementation (Rust `tokenizers` 0.23): a file
 * with a component whose ids could differ is refused. The file's `truncation` and `padding` sections are ignored: limits come from the
 * model's description (`truncation.ts`).
 *
 * Special tokens written in a text (`[SEP]`, case-sensitive) become special tokens, as in other retrieval servers. A lone surrogate
 * is read as U+FFFD, as UTF-8 encodes it; BERT's normaliser removes it, together with NUL and control characters. Combining marks
 * after the 30th in a row are dropped (`normalizers.ts`). Tokenising takes linear time in the length of a text.
 */
export class TextTokenizer {
  readonly #normalize: (text: string) => string;
  readonly #addedTokens: { readonly raw: AddedTokenSplit; readonly normalized: AddedTokenSplit };
  readonly #split: Splitter;
  readonly #encodeWord: WordEncoder;
  readonly #framing: Framing;
  readonly #boundary: TextBoundary | null;
  /** Whether a text may be split at white space and its parts tokenised separately without changing an id. */
  readonly splitsAtWhitespace: boolean;
  /** Separates two parts of one text: `[SEP]`, else the model's own separator; null if the model has none. */
  readonly separator: { readonly text: string; readonly id: number } | null;

  /** `path` is used in messages. Throws MODEL_INVALID for a file that is not a tokenizer.json, or whose ids could differ from the reference's. */
  constructor(json: JsonObject, path: string) {
    try {
      const file = readTokenizerFile(json);
      const { normalizer, pre_tokenizer: words, model, post_processor: processor, added_tokens: added } = file;
      this.#normalize = normalizer == null ? (text) => text : openNormalizer(normalizer);
      this.#split = words == null ? (text) => [text] : openSplitter(words);
      this.#encodeWord = openModel(model ?? {}, added ?? []);
      this.#addedTokens = splitsAtAddedTokens(added ?? [], this.#normalize);
      this.#framing = openFraming(processor ?? null);
      this.#boundary = boundaryOf(file, this.#split);
      this.splitsAtWhitespace = this.#boundary !== null && hasBertWords(file);
      this.separator = this.#findSeparator(added ?? []);
    } catch (error) {
      throw invalidModel(
        `${path} is not a usable tokenizer: ${(error as Error).message}. Trawl reads a tokenizer.json only if it gives the ids that ` +
          "Python's tokenizers give. If the file is damaged, fetch it again; otherwise a server of embeddings can run the model: " +
          '--model http://HOST:PORT (docs/endpoints.md).',
        { cause: error },
      );
    }
  }

  static async load(path: string): Promise<TextTokenizer> {
    return new TextTokenizer(await readJsonFile(path), path);
  }

  /** Ids that the post-processor puts before and after the text's own ids: [CLS] and [SEP]. */
  get leadingIds(): readonly number[] {
    return this.#framing.before;
  }

  get trailingIds(): readonly number[] {
    return this.#framing.after;
  }

  /** Number of special tokens around a text; every token limit includes them. */
  get framingTokens(): number {
    return this.leadingIds.length + this.trailingIds.length;
  }

  /** The text's ids without special tokens, exact up to `atMost` (see `idsOfHead`). */
  contentIds(text: string, atMost: number): number[] {
    return idsOfHead(text, atMost, this.#boundary, (part) => this.#idsOf(part));
  }

  frame(contentIds: readonly number[]): number[] {
    return [...this.leadingIds, ...contentIds, ...this.trailingIds];
  }

  /** Number of special tokens of a pair. Throws MODEL_INVALID if the tokenizer has no template for pairs. */
  get pairFramingTokens(): number {
    const { before, between, after } = this.#pairFraming();
    return before.length + between.length + after.length;
  }

  /** Content ids of two texts with their special tokens, and the token type of each (token_type_ids). */
  framePair(first: readonly number[], second: readonly number[]): { ids: number[]; types: number[] } {
    const { before, between, after, secondType } = this.#pairFraming();
    const ids = [...before, ...first, ...between, ...second, ...after];
    const start = ids.length - after.length - second.length;
    return { ids, types: ids.map((_, at) => (at < start ? 0 : secondType)) };
  }

  #pairFraming(): PairFraming {
    if (this.#framing.pair !== undefined) return this.#framing.pair;
    throw invalidModel("The tokenizer's post-processor has no template for pairs, which a cross-encoder needs.");
  }

  #idsOf(text: string): number[] {
    const ids: number[] = [];
    for (const [i, section] of this.#addedTokens.raw(text.replace(/\p{Surrogate}/gu, '\uFFFD')).entries()) {
      const parts = typeof section === 'number' ? [section] : this.#addedTokens.normalized(this.#normalize(section));
      for (const [j, part] of parts.entries()) {
        if (typeof part === 'number') ids.push(part);
        else if (part !== '') this.#pushWords(part, i + j === 0 && this.#keepsStart(text), ids);
      }
    }
    return ids;
  }

  /** Whether the first character is in the normalised text. */
  #keepsStart(text: string): boolean {
    return this.#normalize(String.fromCodePoint(text.codePointAt(0)!)) !== '';
  }

  #pushWords(text: string, isFirst: boolean, ids: number[]): void {
    for (const word of this.#split(text, isFirst)) for (const id of this.#encodeWord(word)) ids.push(id);
  }

  #findSeparator(addedTokens: readonly AddedToken[]): TextTokenizer['separator'] {
    const token =
      addedTokens.find(({ content }) => content === '[SEP]') ??
      addedTokens.find(({ id }) => id === this.trailingIds.at(-1));
    return token === undefined ? null : { text: token.content, id: token.id };
  }
}
