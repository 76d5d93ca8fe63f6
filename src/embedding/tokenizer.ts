import { readFile } from 'node:fs/promises';
import { Tokenizer } from '@huggingface/tokenizers';
import { isNodeError, TrawlError } from '../errors.ts';
import type { JsonObject } from './json-file.ts';
import { idsOfHead, type TextBoundary } from './text-cutting.ts';
import {
  applyReferenceRules,
  fileForLibrary,
  type LibraryTokenizer,
  type TokenizerFile,
  tokenizesPartsAlike,
  whitespaceTaker,
} from './tokenizer-rules.ts';

/**
 * Text → token ids by a tokenizer.json, the same ids as the reference implementation (Rust `tokenizers`) for BERT's
 * WordPiece, RoBERTa's byte-level BPE and XLM-R's Unigram (`tokenizer-rules.ts` has where the library differs). The only file that knows @huggingface/tokenizers. Truncation is not here (`truncation.ts`), and the
 * file's own `truncation` and `padding` sections are not looked at: limits come from the model's description.
 *
 * Special tokens written in a text (`[SEP]`, case-sensitive) are special tokens, as for every peer. A lone surrogate is
 * read as U+FFFD, which is what it becomes in UTF-8; BERT's normaliser removes it, and NUL and control characters too.
 * Of combining marks in a row those after the 30th are dropped (`bert-text.ts`). Nothing here takes more than linear
 * time in the length of a text, which `tokenizeInput` bounds.
 */
export class TextTokenizer {
  readonly #tokenizer: LibraryTokenizer;
  readonly #takeWhitespace: (text: string) => string;
  readonly #boundary: TextBoundary | null;
  /** True where a text may be cut at white space and its parts tokenised apart without changing an id. */
  readonly splitsAtWhitespace: boolean;
  /** Ids that the post-processor puts before and after a text's own: [CLS] and [SEP]. */
  readonly leadingIds: readonly number[];
  readonly trailingIds: readonly number[];
  /** How two texts stand together (`framePair`); null where the post-processor has no form for that. */
  readonly #pair: PairFraming | null;
  /** What separates two parts of one text: `[SEP]`, else the model's own; null where the model has none. */
  readonly separator: { readonly text: string; readonly id: number } | null;

  /** Throws MODEL_INVALID where `file` is not a tokenizer that the library can use. `path` is for messages. */
  constructor(file: JsonObject, path: string) {
    const { added_tokens: addedTokens = [] } = file as TokenizerFile;
    try {
      // The second argument is tokenizer_config.json, whose few fields the reference does not look at either.
      this.#tokenizer = new Tokenizer(fileForLibrary(file), {}) as unknown as LibraryTokenizer;
      this.#takeWhitespace = whitespaceTaker(file as TokenizerFile);
      this.#boundary = applyReferenceRules(this.#tokenizer, file as TokenizerFile);
      this.splitsAtWhitespace = this.#boundary !== null && tokenizesPartsAlike(file as TokenizerFile);
      [this.leadingIds, this.trailingIds] = this.#findFramingIds();
      this.#pair = this.#findPairFraming((file as TokenizerFile).post_processor?.type);
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

  /** The text's own ids, without framing; see `idsOfHead` for what `atMost` promises. */
  contentIds(text: string, atMost: number): number[] {
    return idsOfHead(text, atMost, this.#boundary, (part) => this.#idsOf(part));
  }

  /** Content ids within their special tokens. */
  frame(contentIds: readonly number[]): number[] {
    return [...this.leadingIds, ...contentIds, ...this.trailingIds];
  }

  /** Special tokens of a pair, counted in every limit. Throws MODEL_INVALID where the tokenizer has no form for pairs. */
  get pairFramingTokens(): number {
    const { before, between, after } = this.#pairFraming();
    return before.length + between.length + after.length;
  }

  /** Two texts' content ids within their special tokens, and for each token which text it is of (token_type_ids). */
  framePair(first: readonly number[], second: readonly number[]): { ids: number[]; types: number[] } {
    const { before, between, after, secondType } = this.#pairFraming();
    const ids = [...before, ...first, ...between, ...second, ...after];
    const start = ids.length - after.length - second.length;
    return { ids, types: ids.map((_, at) => (at < start ? 0 : secondType)) };
  }

  #pairFraming(): PairFraming {
    if (this.#pair !== null) return this.#pair;
    throw new TrawlError(
      'MODEL_INVALID',
      "The tokenizer's post-processor has no form for two texts, which a cross-encoder needs.",
    );
  }

  #idsOf(text: string): number[] {
    const wellFormed = text.replace(/\p{Surrogate}/gu, '\uFFFD');
    return this.#tokenizer.encode(this.#takeWhitespace(wellFormed), { add_special_tokens: false }).ids;
  }

  #findFramingIds(): [number[], number[]] {
    const content = this.#idsOf('a');
    const framed = this.#tokenizer.encode('a').ids;
    const start = framed.findIndex((_, at) => content.every((id, i) => framed[at + i] === id));
    if (start < 0) throw new Error('its post-processor changes the text');
    return [framed.slice(0, start), framed.slice(start + content.length)];
  }

  #findPairFraming(postProcessor: string | undefined): PairFraming | null {
    const content = this.#idsOf('a');
    const { ids, token_type_ids: types = [] } = this.#tokenizer.encode('a', {
      text_pair: 'a',
      add_special_tokens: true,
      return_token_type_ids: true,
    });
    const startsAt = (from: number) =>
      ids.findIndex((_, at) => at >= from && content.every((id, i) => ids[at + i] === id));
    const first = startsAt(0);
    const second = first < 0 ? -1 : startsAt(first + content.length);
    if (second < 0) return null;
    // The reference gives RoBERTa's pairs the type 0 throughout, the library 0 and 1.
    const secondType = postProcessor === 'RobertaProcessing' ? 0 : (types[second] ?? 0);
    return {
      before: ids.slice(0, first),
      between: ids.slice(first + content.length, second),
      after: ids.slice(second + content.length),
      secondType,
    };
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

/** Special tokens before, between and after two texts; those after have the second's type, the others 0. */
interface PairFraming {
  readonly before: readonly number[];
  readonly between: readonly number[];
  readonly after: readonly number[];
  readonly secondType: number;
}
