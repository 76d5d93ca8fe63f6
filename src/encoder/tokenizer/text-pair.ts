import { TrawlError } from '../../base/errors.ts';
import type { PairTemplate } from '../model/trawl-model-file.ts';
import { countCharacters, type EncoderInput } from '../text-encoder.ts';
import type { TextTokenizer } from './tokenizer.ts';
import { headOf, type TokenizedText } from './truncation.ts';

export interface QueryAndPassage {
  readonly passage: string;
  readonly query: string;
  readonly truncatePair: PairTruncation;
}

export type WorkInput = EncoderInput | QueryAndPassage;

export function workCharacters(input: WorkInput): number {
  const isPair = typeof input !== 'string' && 'passage' in input;
  return isPair ? input.query.length + input.passage.length : countCharacters(input);
}

/** What is truncated in a pair over the token limit: first the longer text, then both (as transformers does), or only the passage. */
export type PairTruncation = 'longest-first' | 'passage';

/** Token ids of query and passage with their special tokens. Throws ENCODING_FAILED if no room is left for the passage. */
export function tokenizePair(tokenizer: TextTokenizer, pair: QueryAndPassage, maxTokens: number): TokenizedText {
  const room = maxTokens - tokenizer.pairFramingTokens;
  const [query, passage] = [headOf(pair.query), headOf(pair.passage)];
  const wasCut = query !== pair.query || passage !== pair.passage;
  const queryIds = tokenizer.contentIds(query, Number.POSITIVE_INFINITY);
  let passageIds = tokenizer.contentIds(passage, room);
  if (queryIds.length + passageIds.length <= room) {
    return { ...tokenizer.framePair(queryIds, passageIds), cut: wasCut ? 'tail' : 'nothing' };
  }
  // An odd token goes to the longer text, so both lengths must be known.
  if (queryIds.length > room) passageIds = tokenizer.contentIds(passage, Number.POSITIVE_INFINITY);
  const [first, second] =
    pair.truncatePair === 'passage'
      ? [queryIds.length, room - queryIds.length]
      : longestFirst(queryIds.length, passageIds.length, room);
  if (second < 1) {
    throw noRoom(queryIds.length, maxTokens);
  }
  return { ...tokenizer.framePair(queryIds.slice(0, first), passageIds.slice(0, second)), cut: 'tail' };
}

/** The two lengths after truncation, as the reference (Rust `tokenizers`) computes them. */
function longestFirst(first: number, second: number, room: number): [number, number] {
  const shorter = Math.min(first, second);
  const [less, more] =
    2 * shorter > room ? [Math.floor(room / 2), Math.ceil(room / 2)] : [shorter, Math.max(shorter, room - shorter)];
  return first > second ? [more, less] : [less, more];
}

/**
 * Token ids of a pair within its template. Of a pair over the limit the passage is truncated; a query that alone fills the room is
 * truncated too, unless only the passage may be, and leaves the passage one token. The template is kept whole. Throws ENCODING_FAILED if no
 * room is left for query or passage.
 */
export function tokenizeInTemplate(
  tokenizer: TextTokenizer,
  template: PairTemplate,
  pair: QueryAndPassage,
  maxTokens: number,
): TokenizedText {
  const idsOf = (text: string, atMost = Number.POSITIVE_INFINITY): number[] => tokenizer.contentIds(text, atMost);
  // A space is part of the token of the word after it.
  const [start, startSpace] = withoutLastSpace(template.before);
  const [between, betweenSpace] = withoutLastSpace(template.between);
  const [before, after] = [idsOf(start), idsOf(template.after)];
  const room = maxTokens - before.length - after.length;
  const [query, passage] = [headOf(pair.query), headOf(pair.passage)];
  // With what follows it, because the end of the query may join a line break into one token.
  const first = idsOf(startSpace + query + between);
  const second = idsOf(betweenSpace + passage, Math.max(0, room));
  const framed = (one: readonly number[], two: readonly number[]): number[] => [...before, ...one, ...two, ...after];
  if (first.length + second.length <= room) {
    const wasCut = query !== pair.query || passage !== pair.passage;
    return { ids: framed(first, second), cut: wasCut ? 'tail' : 'nothing' };
  }
  const kept = pair.truncatePair === 'passage' ? first.length : Math.min(first.length, room - 1);
  const left = room - kept;
  const marker = idsOf(between);
  if (left < 1 || kept <= marker.length) {
    throw noRoom(first.length, maxTokens, `, of which its prompt takes ${before.length + after.length}`);
  }
  const shortened =
    kept === first.length ? first : [...idsOf(startSpace + query).slice(0, kept - marker.length), ...marker];
  return { ids: framed(shortened, second.slice(0, left)), cut: 'tail' };
}

function noRoom(queryTokens: number, maxTokens: number, taken = ''): TrawlError {
  return new TrawlError(
    'ENCODING_FAILED',
    `The query has ${queryTokens} tokens, which leaves no room for a passage: the limit of the model is ${maxTokens}${taken}. ` +
      'Shorten the query, or truncate both texts (longest-first).',
    { details: { queryTokens, maxTokens } },
  );
}

function withoutLastSpace(text: string): readonly [string, string] {
  return text.endsWith(' ') ? [text.slice(0, -1), ' '] : [text, ''];
}
