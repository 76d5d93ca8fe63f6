import { Tokenizer } from '@huggingface/tokenizers';
import { invalidModel, type JsonObject, readJsonFile } from '../model/json-file.ts';
import { idsOfHead, type TextBoundary } from './text-boundary.ts';
import type { AddedToken, TokenizerFile } from './tokenizer-file.ts';
import {
  applyReferenceRules,
  canSplitAtWhitespace,
  fileForLibrary,
  type LibraryTokenizer,
  whitespaceStripper,
} from './tokenizer-rules.ts';

/**
 * Turns a text into token ids by a tokenizer.json. The ids equal the ids of the reference implementation (Rust `tokenizers`) for BERT's
 * WordPiece, RoBERTa's byte-level BPE and XLM-R's Unigram; `tokenizer-rules.ts` replaces the library's functions that differ. The
 * file's `truncation` and `padding` sections are ignored: limits come from the model's description (`truncation.ts`).
 *
 * Special tokens written in a text (`[SEP]`, case-sensitive) become special tokens, as in other retrieval servers. A lone surrogate
 * is read as U+FFFD, as UTF-8 encodes it; BERT's normaliser removes it, together with NUL and control characters. Combining marks
 * after the 30th in a row are dropped (`normalizers.ts`). Tokenising takes linear time in the length of a text.
 */
export class TextTokenizer {
  readonly #tokenizer: LibraryTokenizer;
  readonly #stripWhitespace: (text: string) => string;
  readonly #boundary: TextBoundary | null;
  /** Whether a text may be split at white space and its parts tokenised separately without changing an id. */
  readonly splitsAtWhitespace: boolean;
  /** Ids that the post-processor puts before and after the text's own ids: [CLS] and [SEP]. */
  readonly leadingIds: readonly number[];
  readonly trailingIds: readonly number[];
  /** Special tokens of a pair (`framePair`); null if the post-processor has no template for pairs. */
  readonly #pair: PairFraming | null;
  /** Separates two parts of one text: `[SEP]`, else the model's own separator; null if the model has none. */
  readonly separator: { readonly text: string; readonly id: number } | null;

  /** `path` is used in messages. Throws MODEL_INVALID if the library cannot use the file. */
  constructor(json: JsonObject, path: string) {
    const file = json as TokenizerFile;
    try {
      // The second argument is tokenizer_config.json, which the reference ignores.
      this.#tokenizer = new Tokenizer(fileForLibrary(file), {}) as unknown as LibraryTokenizer;
      this.#stripWhitespace = whitespaceStripper(file);
      this.#boundary = applyReferenceRules(this.#tokenizer, file);
      this.splitsAtWhitespace = this.#boundary !== null && canSplitAtWhitespace(file);
      [this.leadingIds, this.trailingIds] = this.#findFramingIds();
      this.#pair = this.#findPairFraming(file.post_processor?.type);
      this.separator = this.#findSeparator(file.added_tokens ?? []);
    } catch (error) {
      throw invalidModel(
        `${path} is not a usable tokenizer: ${(error as Error).message}. Fetch the model's tokenizer.json again.`,
        { cause: error },
      );
    }
  }

  static async load(path: string): Promise<TextTokenizer> {
    return new TextTokenizer(await readJsonFile(path), path);
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
    if (this.#pair !== null) return this.#pair;
    throw invalidModel("The tokenizer's post-processor has no template for pairs, which a cross-encoder needs.");
  }

  #idsOf(text: string): number[] {
    const wellFormed = text.replace(/\p{Surrogate}/gu, '\uFFFD');
    return this.#tokenizer.encode(this.#stripWhitespace(wellFormed), { add_special_tokens: false }).ids;
  }

  #findFramingIds(): [number[], number[]] {
    const content = this.#idsOf('a');
    const framed = this.#tokenizer.encode('a').ids;
    const start = indexOfRun(framed, content);
    if (start < 0) throw new Error('its post-processor changes the ids of the text');
    return [framed.slice(0, start), framed.slice(start + content.length)];
  }

  #findPairFraming(postProcessor: string | undefined): PairFraming | null {
    const content = this.#idsOf('a');
    const { ids, token_type_ids: types = [] } = this.#tokenizer.encode('a', {
      text_pair: 'a',
      add_special_tokens: true,
      return_token_type_ids: true,
    });
    const first = indexOfRun(ids, content);
    const second = first < 0 ? -1 : indexOfRun(ids, content, first + content.length);
    if (second < 0) return null;
    return {
      before: ids.slice(0, first),
      between: ids.slice(first + content.length, second),
      after: ids.slice(second + content.length),
      // The reference gives all tokens of RoBERTa's pairs type 0; the library gives 0 and 1.
      secondType: postProcessor === 'RobertaProcessing' ? 0 : (types[second] ?? 0),
    };
  }

  #findSeparator(addedTokens: readonly AddedToken[]): TextTokenizer['separator'] {
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

/** Where a run of ids begins in others, from a position on; -1 if nowhere. */
function indexOfRun(ids: readonly number[], run: readonly number[], from = 0): number {
  return ids.findIndex((_, at) => at >= from && run.every((id, i) => ids[at + i] === id));
}

/** Special tokens before, between and after two texts. Those after have the second text's type, the others 0. */
interface PairFraming {
  readonly before: readonly number[];
  readonly between: readonly number[];
  readonly after: readonly number[];
  readonly secondType: number;
}
