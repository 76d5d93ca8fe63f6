import { readFile } from 'node:fs/promises';
import { Tokenizer } from '@huggingface/tokenizers';
import { isNodeError, TrawlError } from '../errors.ts';
import { type BertNormalizerConfig, normalizeBertText, splitBertWords, withoutEndlessMarks } from './bert-text.ts';
import type { JsonObject } from './json-file.ts';
import { bertBoundary, idsOfHead } from './text-cutting.ts';
import { type WordPieceModel, wordPieceEncoder } from './word-pieces.ts';

/** The parts of a tokenizer.json that are looked at here; the library reads the rest. */
interface TokenizerFile {
  readonly normalizer?: (BertNormalizerConfig & { readonly type?: string }) | null;
  readonly pre_tokenizer?: { readonly type?: string } | null;
  readonly model?: { readonly type?: string };
  readonly added_tokens?: readonly { readonly content: string; readonly special?: boolean }[];
}

/** What is used of the library's class; its own declarations do not resolve under `nodenext`. */
interface LibraryTokenizer {
  normalizer: ((text: string) => string) | null;
  pre_tokenizer: ((text: string) => string[]) | null;
  readonly model: WordPieceModel & { encode: (words: readonly string[]) => string[] };
  encode(text: string, options?: { add_special_tokens: boolean }): { ids: number[] };
  token_to_id(token: string): number | undefined;
  id_to_token(id: number): string | undefined;
}

/**
 * Text → token ids by a tokenizer.json, the same ids as the reference implementation (Rust `tokenizers`) for BERT's
 * WordPiece. The only file that knows @huggingface/tokenizers. Truncation is not here (`truncation.ts`), and the
 * file's own `truncation` and `padding` sections are not looked at: limits come from the model's description.
 *
 * Special tokens written in a text (`[SEP]`, case-sensitive) are special tokens, as for every peer. A lone surrogate is
 * read as U+FFFD, which is what it becomes in UTF-8; BERT's normaliser removes it, and NUL and control characters too.
 * Of combining marks in a row those after the 30th are dropped (`bert-text.ts`). Nothing here takes more than linear
 * time in the length of a text, which `tokenizeInput` bounds.
 */
export class TextTokenizer {
  readonly #tokenizer: LibraryTokenizer;
  readonly #boundary: RegExp | null;
  /** Ids that the post-processor puts before and after a text's own: [CLS] and [SEP]. */
  readonly leadingIds: readonly number[];
  readonly trailingIds: readonly number[];
  /** What separates two parts of one text: `[SEP]`, else the model's own; null where the model has none. */
  readonly separator: { readonly text: string; readonly id: number } | null;

  /** Throws MODEL_INVALID where `file` is not a tokenizer that the library can use. `path` is for messages. */
  constructor(file: JsonObject, path: string) {
    const { normalizer, pre_tokenizer: preTokenizer, model, added_tokens: addedTokens = [] } = file as TokenizerFile;
    try {
      // The second argument is tokenizer_config.json, whose few fields the reference does not look at either.
      this.#tokenizer = new Tokenizer(file, {});
      const exactNormalizer = normalizer?.type === 'BertNormalizer';
      const exactWords = preTokenizer?.type === 'BertPreTokenizer';
      const libraryNormalizer = this.#tokenizer.normalizer;
      // The library only calls these, so functions with the reference's rules can take their place.
      if (exactNormalizer) this.#tokenizer.normalizer = (text) => normalizeBertText(text, normalizer);
      else if (libraryNormalizer !== null) {
        this.#tokenizer.normalizer = (text) => libraryNormalizer(withoutEndlessMarks(text));
      }
      if (exactWords) this.#tokenizer.pre_tokenizer = splitBertWords;
      if (model?.type === 'WordPiece') this.#tokenizer.model.encode = wordPieceEncoder(this.#tokenizer.model);
      this.#boundary =
        exactNormalizer && exactWords
          ? bertBoundary(
              addedTokens.map((token) => token.content),
              normalizer.handle_chinese_chars ?? true,
            )
          : null;
      [this.leadingIds, this.trailingIds] = this.#findFramingIds();
      this.separator = this.#findSeparator(addedTokens);
    } catch (error) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${path} is not a usable tokenizer: ${(error as Error).message}. Fetch the model's tokenizer.json again.`,
        { cause: error },
      );
    }
  }

  static async load(path: string): Promise<TextTokenizer> {
    let file: unknown;
    try {
      file = JSON.parse(await readFile(path, 'utf8'));
    } catch (error) {
      const missing = isNodeError(error) && error.code === 'ENOENT';
      throw new TrawlError(
        'MODEL_INVALID',
        missing
          ? `${path} is missing: a model needs its tokenizer.json.`
          : `${path} cannot be read as JSON: ${(error as Error).message}.`,
        { cause: error },
      );
    }
    return new TextTokenizer(file as JsonObject, path);
  }

  /** Ids that stand for special tokens around a text, counted in every limit. */
  get framingTokens(): number {
    return this.leadingIds.length + this.trailingIds.length;
  }

  /** True where a text may be cut at white space and its parts tokenised apart without changing an id. */
  get splitsAtWhitespace(): boolean {
    return this.#boundary !== null;
  }

  /** The text's own ids, without framing; see `idsOfHead` for what `atMost` promises. */
  contentIds(text: string, atMost: number): number[] {
    return idsOfHead(text, atMost, this.#boundary, (part) => this.#idsOf(part));
  }

  /** Content ids within their special tokens. */
  frame(contentIds: readonly number[]): number[] {
    return [...this.leadingIds, ...contentIds, ...this.trailingIds];
  }

  #idsOf(text: string): number[] {
    return this.#tokenizer.encode(text.replace(/\p{Surrogate}/gu, '\uFFFD'), { add_special_tokens: false }).ids;
  }

  #findFramingIds(): [number[], number[]] {
    const content = this.#idsOf('a');
    const framed = this.#tokenizer.encode('a').ids;
    const start = framed.findIndex((_, at) => content.every((id, i) => framed[at + i] === id));
    if (start < 0) throw new Error('its post-processor changes the text');
    return [framed.slice(0, start), framed.slice(start + content.length)];
  }

  #findSeparator(addedTokens: NonNullable<TokenizerFile['added_tokens']>): TextTokenizer['separator'] {
    const lastId = this.trailingIds.at(-1);
    const own = lastId === undefined ? undefined : this.#tokenizer.id_to_token(lastId);
    for (const text of ['[SEP]', own]) {
      const id = text === undefined ? undefined : this.#tokenizer.token_to_id(text);
      if (text !== undefined && id !== undefined && addedTokens.some((token) => token.content === text)) {
        return { text, id };
      }
    }
    return null;
  }
}
