import { TrawlError } from '../../base/errors.ts';
import type { EncoderInput } from '../text-encoder.ts';
import type { TextTokenizer } from './tokenizer.ts';
import { headOf, type TokenizedText } from './truncation.ts';

/** Input of a cross-encoder. */
export interface QueryAndPassage {
  readonly passage: string;
  readonly query: string;
  readonly truncatePair: PairTruncation;
}

/** A text to embed or a pair to score. */
export type WorkInput = EncoderInput | QueryAndPassage;

/**
 * How a pair over the token limit is truncated. `longest-first`, the default of transformers, shortens the longer text to the
 * length of the other, then both. `passage` shortens only the passage.
 */
const PAIR_TRUNCATIONS = ['longest-first', 'passage'] as const;
export type PairTruncation = (typeof PAIR_TRUNCATIONS)[number];

/** Token ids of query and passage with their special tokens. Throws ENCODING_FAILED if no room is left for the passage. */
export function tokenizePair(tokenizer: TextTokenizer, pair: QueryAndPassage, maxTokens: number): TokenizedText {
  const room = maxTokens - tokenizer.pairFramingTokens;
  const [query, passage] = [headOf(pair.query), headOf(pair.passage)];
  const wasCut = query !== pair.query || passage !== pair.passage;
  const queryIds = tokenizer.contentIds(query, Number.POSITIVE_INFINITY);
  let passageIds = tokenizer.contentIds(passage, room);
  if (queryIds.length + passageIds.length <= room)
    return { ...tokenizer.framePair(queryIds, passageIds), cut: wasCut ? 'tail' : 'nothing' };
  // An odd token goes to the longer text, so both lengths must be known.
  if (queryIds.length > room) passageIds = tokenizer.contentIds(passage, Number.POSITIVE_INFINITY);
  const [first, second] =
    pair.truncatePair === 'passage'
      ? [queryIds.length, room - queryIds.length]
      : longestFirst(queryIds.length, passageIds.length, room);
  if (second < 1) {
    throw new TrawlError(
      'ENCODING_FAILED',
      `The query has ${queryIds.length} tokens, which leaves no room for a passage: the limit of the model is ${maxTokens}. ` +
        'Shorten the query, or truncate both texts (longest-first).',
      { details: { queryTokens: queryIds.length, maxTokens } },
    );
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
