import {
  type BertNormalizerConfig,
  lowerCased,
  normalizeBertText,
  splitBertWords,
  withoutEndlessMarks,
} from './bert-text.ts';
import { precompiledNormalizer } from './precompiled-charsmap.ts';
import { patternSplitter, type SplitConfig } from './split-pattern.ts';
import {
  type ByteLevelConfig,
  byteLevelSplitter,
  type MetaspaceConfig,
  metaspaceSplitter,
  splitAtWhitespace,
  stripper,
} from './split-words.ts';
import { bertBoundary, type TextBoundary, wordBoundary } from './text-boundary.ts';
import { unicodeForm } from './unicode-forms.ts';
import { type UnigramModel, unigramEncoder } from './unigram-pieces.ts';
import { type WordPieceModel, wordPieceEncoder } from './word-pieces.ts';

/** The fields of a tokenizer.json that this file uses; the library reads the others. */
export interface TokenizerFile {
  readonly normalizer?: Part | null;
  readonly pre_tokenizer?: Part | null;
  readonly model?: Part;
  readonly post_processor?: Part | null;
  readonly added_tokens?: readonly AddedToken[];
}

interface AddedToken {
  readonly content: string;
  readonly id?: number;
  readonly special?: boolean;
  readonly normalized?: boolean;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
}

interface Part {
  readonly type?: string;
  readonly normalizers?: readonly Part[];
  readonly pretokenizers?: readonly Part[];
  readonly precompiled_charsmap?: string | null;
  readonly pattern?: { readonly Regex?: string; readonly String?: string };
  readonly byte_fallback?: boolean;
  readonly strip_left?: boolean;
  readonly strip_right?: boolean;
}

/** The members of the library's class that this project uses; the library's declarations do not resolve under `nodenext`. */
export interface LibraryTokenizer {
  normalizer: LibraryNormalizer | null;
  pre_tokenizer: LibraryPreTokenizer | null;
  readonly model: LibraryModel;
  encode(
    text: string,
    options?: { add_special_tokens: boolean; text_pair?: string; return_token_type_ids?: boolean },
  ): { ids: number[]; token_type_ids?: number[] };
  token_to_id(token: string): number | undefined;
  id_to_token(id: number): string | undefined;
}

type LibraryNormalizer = ((text: string) => string) & { normalizers?: { normalize(text: string): string }[] };
type LibraryPreTokenizer = ((text: string, options?: object) => string[]) & {
  tokenizers?: { pre_tokenize(text: string | string[], options?: object): string[] }[];
};
interface LibraryModel extends WordPieceModel {
  encode: (words: readonly string[]) => string[];
  tokens_to_ids: Map<string, number>;
  vocab: string[];
  fuse_unk: boolean;
  unk_token_id: number | undefined;
  unk_token: string;
}

/**
 * Normalisers under which a text may be split before a single space between two ASCII letters or digits: they keep that space, and the
 * result on one side of it does not depend on the other side.
 */
const LOCAL_NORMALIZERS = ['Precompiled', 'NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase', 'Strip', 'StripAccents'];

/** The file as the library gets it, without the parts that this project replaces. */
export function fileForLibrary(file: object): object {
  const { model, added_tokens: addedTokens = [] } = file as TokenizerFile;
  const changed = {
    ...file,
    added_tokens: addedTokens.map((token) => (stripsWhitespace(token) ? plain(token) : token)),
  };
  if (!isUnigram(model)) return changed;
  if (model.byte_fallback === true) throw new Error('its Unigram model has byte_fallback, which is not supported');
  // The library would build a tree of the vocabulary (see unigram-pieces.ts).
  return { ...changed, model: { ...model, vocab: [model.vocab[model.unk_id]], unk_id: 0 } };
}

/** Removes white space beside added tokens with lstrip or rstrip (`<mask>`), with the reference's definition of white space. */
export function whitespaceStripper({ added_tokens: addedTokens = [] }: TokenizerFile): (text: string) => string {
  const stripping = addedTokens.filter(stripsWhitespace);
  const anyOf = (tokens: readonly AddedToken[]) =>
    tokens.map(({ content }) => content.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|') || '(?!)';
  const space = '\\p{White_Space}';
  // The lookbehind avoids a match attempt at every character of a run of white space.
  const before = new RegExp(
    `(?<!${space})${space}+(?=${anyOf(stripping.filter((token) => token.lstrip === true))})`,
    'gu',
  );
  const after = new RegExp(`(?<=${anyOf(stripping.filter((token) => token.rstrip === true))})${space}+`, 'gu');
  return (text) => (stripping.length === 0 ? text : text.replace(before, '').replace(after, ''));
}

/** Whether this file strips white space beside the token. Tokens that are matched after normalisation are left to the library. */
function stripsWhitespace({ lstrip, rstrip, special, normalized }: AddedToken): boolean {
  return (lstrip === true || rstrip === true) && !(normalized ?? special !== true);
}

function plain(token: AddedToken): AddedToken {
  return { ...token, lstrip: false, rstrip: false };
}

/**
 * Replaces the library's functions that differ from the reference. Returns the boundaries at which a long text may be split before
 * it is tokenised; null if it must not be split.
 */
export function applyReferenceRules(tokenizer: LibraryTokenizer, file: TokenizerFile): TextBoundary | null {
  replaceNormalizer(tokenizer, file.normalizer ?? null);
  replacePreTokenizer(tokenizer, file.pre_tokenizer ?? null);
  replaceModel(tokenizer.model, file);
  return boundaryOf(file);
}

/** Whether a text may be split at white space and its parts tokenised separately without changing an id. */
export function canSplitAtWhitespace({ normalizer, pre_tokenizer }: TokenizerFile): boolean {
  return normalizer?.type === 'BertNormalizer' && pre_tokenizer?.type === 'BertPreTokenizer';
}

function replaceNormalizer(tokenizer: LibraryTokenizer, part: Part | null): void {
  const library = tokenizer.normalizer;
  if (part === null || library === null) return;
  const exact = exactNormalizer(part);
  if (exact !== null) {
    tokenizer.normalizer = exact;
    return;
  }
  for (const [i, inner] of (part.normalizers ?? []).entries()) {
    const normalize = exactNormalizer(inner);
    if (normalize !== null) library.normalizers![i] = { normalize };
  }
  tokenizer.normalizer = (text) => library(withoutEndlessMarks(text));
}

function exactNormalizer(part: Part): ((text: string) => string) | null {
  switch (part.type) {
    case 'BertNormalizer':
      return (text) => normalizeBertText(text, part as BertNormalizerConfig);
    case 'Precompiled':
      return precompiledNormalizer(part.precompiled_charsmap ?? '');
    case 'Strip':
      return stripper(part);
    case 'Lowercase':
      return lowerCased;
    default:
      return unicodeForm(part.type);
  }
}

function replacePreTokenizer(tokenizer: LibraryTokenizer, part: Part | null): void {
  const library = tokenizer.pre_tokenizer;
  if (part === null || library === null) return;
  const exact = exactSplitter(part);
  if (exact !== null) tokenizer.pre_tokenizer = exact;
  for (const [i, inner] of (part.pretokenizers ?? []).entries()) {
    const split = exactSplitter(inner);
    if (split !== null) library.tokenizers![i] = { pre_tokenize: (texts) => [texts].flat().flatMap(split) };
  }
}

function exactSplitter(part: Part): ((text: string) => string[]) | null {
  switch (part.type) {
    case 'BertPreTokenizer':
      return splitBertWords;
    case 'ByteLevel':
      return byteLevelSplitter(part as ByteLevelConfig);
    case 'WhitespaceSplit':
      return splitAtWhitespace;
    case 'Metaspace':
      return metaspaceSplitter(part as MetaspaceConfig);
    case 'Split':
      return patternSplitter(part as SplitConfig);
    default:
      return null;
  }
}

function replaceModel(model: LibraryModel, { model: part, added_tokens: addedTokens = [] }: TokenizerFile): void {
  if (part?.type === 'WordPiece') model.encode = wordPieceEncoder(model);
  if (!isUnigram(part)) return;
  model.encode = unigramEncoder(part);
  model.fuse_unk = false;
  model.unk_token_id = part.unk_id;
  model.vocab = part.vocab.map(([piece]) => piece);
  model.tokens_to_ids = new Map(model.vocab.map((piece, id) => [piece, id]));
  for (const { content, id } of addedTokens) {
    if (id === undefined) continue;
    model.vocab[id] = content;
    model.tokens_to_ids.set(content, id);
  }
}

function isUnigram(part: Part | undefined): part is Part & UnigramModel {
  return part?.type === 'Unigram' && Array.isArray((part as Partial<UnigramModel>).vocab);
}

function boundaryOf(file: TokenizerFile): TextBoundary | null {
  const added = (file.added_tokens ?? []).map((token) => token.content);
  if (canSplitAtWhitespace(file)) {
    return bertBoundary(added, (file.normalizer as BertNormalizerConfig).handle_chinese_chars ?? true);
  }
  const { normalizer, pre_tokenizer: words } = file;
  const normalizers = normalizer == null ? [] : (normalizer.normalizers ?? [normalizer]);
  const isLocal = normalizers.every(
    ({ type = '', pattern }) => LOCAL_NORMALIZERS.includes(type) || (type === 'Replace' && pattern?.Regex === ' {2,}'),
  );
  const splitters = words == null ? [] : (words.pretokenizers ?? [words]);
  return isLocal && splitters.some(splitsBeforeSpaces) ? wordBoundary(added) : null;
}

/** Whether a word ends where a single space stands between two ASCII letters or digits. */
function splitsBeforeSpaces(part: Part): boolean {
  const split = exactSplitter(part);
  if (split === null) return false;
  if (part.type === 'Split') return ['a b', 'a 1', '1 a', '1 1'].every((text) => split(text)[0] === text.charAt(0));
  return (part as ByteLevelConfig).use_regex !== false && (part as MetaspaceConfig).split !== false;
}
