import { canonicalForm, lowerCased, normalizeBertText, stripper, withoutEndlessMarks } from './normalizers.ts';
import { precompiledNormalizer } from './precompiled-charsmap.ts';
import {
  byteLevelSplitter,
  metaspaceSplitter,
  patternSplitter,
  splitAtWhitespace,
  splitBertWords,
} from './splitters.ts';
import { bertBoundary, type TextBoundary, wordBoundary } from './text-boundary.ts';
import type { AddedToken, TokenizerFile, TokenizerPart } from './tokenizer-file.ts';
import { type UnigramModel, unigramEncoder } from './unigram-pieces.ts';
import { type WordPieceModel, wordPieceEncoder } from './word-pieces.ts';

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
    added_tokens: addedTokens.map((token) =>
      stripsWhitespace(token) ? { ...token, lstrip: false, rstrip: false } : token,
    ),
  };
  if (!isUnigram(model)) return changed;
  if (model.byte_fallback === true) throw new Error('its Unigram model has byte_fallback, which is not supported');
  // The library would build a tree of the vocabulary (see unigram-pieces.ts).
  return { ...changed, model: { ...model, vocab: [model.vocab[model.unk_id]], unk_id: 0 } };
}

/** Removes white space beside added tokens with lstrip or rstrip (`<mask>`), with the reference's definition of white space. */
export function whitespaceStripper({ added_tokens: addedTokens = [] }: TokenizerFile): (text: string) => string {
  const stripping = addedTokens.filter(stripsWhitespace);
  if (stripping.length === 0) return (text) => text;
  const anyOf = (tokens: readonly AddedToken[]) =>
    tokens.map(({ content }) => content.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|') || '(?!)';
  const [left, right] = [stripping.filter(({ lstrip }) => lstrip), stripping.filter(({ rstrip }) => rstrip)];
  const space = '\\p{White_Space}';
  // The lookbehind avoids a match attempt at every character of a run of white space.
  const before = new RegExp(`(?<!${space})${space}+(?=${anyOf(left)})`, 'gu');
  const after = new RegExp(`(?<=${anyOf(right)})${space}+`, 'gu');
  return (text) => text.replace(before, '').replace(after, '');
}

/** Whether this file strips white space beside the token. Tokens that are matched after normalisation are left to the library. */
function stripsWhitespace({ lstrip, rstrip, special, normalized }: AddedToken): boolean {
  return (lstrip === true || rstrip === true) && !(normalized ?? special !== true);
}

/** Replaces the library's functions that differ from the reference. Returns where a long text may be split; null if nowhere. */
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

function replaceNormalizer(tokenizer: LibraryTokenizer, part: TokenizerPart | null): void {
  const library = tokenizer.normalizer;
  if (part === null || library === null) return;
  const exact = exactNormalizer(part);
  for (const [i, inner] of (part.normalizers ?? []).entries()) {
    const normalize = exactNormalizer(inner);
    if (normalize !== undefined) library.normalizers![i] = { normalize };
  }
  tokenizer.normalizer = exact ?? ((text) => library(withoutEndlessMarks(text)));
}

function exactNormalizer(part: TokenizerPart): ((text: string) => string) | undefined {
  switch (part.type) {
    case 'BertNormalizer':
      return (text) => normalizeBertText(text, part);
    case 'Precompiled':
      return precompiledNormalizer(part.precompiled_charsmap ?? '');
    case 'Strip':
      return stripper(part);
    case 'Lowercase':
      return lowerCased;
    case 'NFC':
    case 'NFD':
      return canonicalForm(part.type);
    default:
      return undefined;
  }
}

function replacePreTokenizer(tokenizer: LibraryTokenizer, part: TokenizerPart | null): void {
  const library = tokenizer.pre_tokenizer;
  if (part === null || library === null) return;
  tokenizer.pre_tokenizer = exactSplitter(part) ?? library;
  for (const [i, inner] of (part.pretokenizers ?? []).entries()) {
    const split = exactSplitter(inner);
    if (split !== undefined) library.tokenizers![i] = { pre_tokenize: (texts) => [texts].flat().flatMap(split) };
  }
}

function exactSplitter(part: TokenizerPart): ((text: string) => string[]) | undefined {
  switch (part.type) {
    case 'BertPreTokenizer':
      return splitBertWords;
    case 'ByteLevel':
      return byteLevelSplitter(part);
    case 'WhitespaceSplit':
      return splitAtWhitespace;
    case 'Metaspace':
      return metaspaceSplitter(part);
    case 'Split':
      return patternSplitter(part);
    default:
      return undefined;
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

function isUnigram(part: TokenizerPart | undefined): part is TokenizerPart & UnigramModel {
  return part?.type === 'Unigram' && Array.isArray(part.vocab);
}

function boundaryOf(file: TokenizerFile): TextBoundary | null {
  const added = (file.added_tokens ?? []).map((token) => token.content);
  if (canSplitAtWhitespace(file)) {
    return bertBoundary(added, file.normalizer?.handle_chinese_chars ?? true);
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
function splitsBeforeSpaces(part: TokenizerPart): boolean {
  const splitter = exactSplitter(part);
  if (splitter === undefined) return false;
  if (part.type === 'Split') return ['a b', 'a 1', '1 a', '1 1'].every((text) => splitter(text)[0] === text.charAt(0));
  return part.use_regex !== false && part.split !== false;
}
