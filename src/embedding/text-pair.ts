import { TrawlError } from '../errors.ts';
import type { TextTokenizer } from './tokenizer.ts';
import { headOf, type TokenizedText } from './truncation.ts';

/** What a cross-encoder looks at. */
export interface QueryAndPassage {
  readonly passage: string;
  readonly query: string;
  readonly truncatePair: PairTruncation;
}

/**
 * What is cut where a pair has more tokens than the model takes: `longest-first` as transformers does by default (the
 * longer text down to the other's length, then both), or the `passage` alone.
 */
export const PAIR_TRUNCATIONS = ['longest-first', 'passage'] as const;
export type PairTruncation = (typeof PAIR_TRUNCATIONS)[number];

/** Query and passage within their special tokens. ENCODING_FAILED where no room is left for the passage. */
export function tokenizePair(tokenizer: TextTokenizer, pair: QueryAndPassage, maxTokens: number): TokenizedText {
  const room = maxTokens - tokenizer.pairFramingTokens;
  const [query, passage] = [headOf(pair.query), headOf(pair.passage)];
  const cut = query !== pair.query || passage !== pair.passage;
  const queryIds = tokenizer.contentIds(query, Number.POSITIVE_INFINITY);
  let passageIds = tokenizer.contentIds(passage, room);
  if (queryIds.length + passageIds.length <= room)
    return { ...tokenizer.framePair(queryIds, passageIds), cut: cut ? 'tail' : 'nothing' };
  // Which of two endless texts is longer decides where an odd token goes.
  if (queryIds.length > room) passageIds = tokenizer.contentIds(passage, Number.POSITIVE_INFINITY);
  const [first, second] =
    pair.truncatePair === 'passage'
      ? [queryIds.length, room - queryIds.length]
      : longestFirst(queryIds.length, passageIds.length, room);
  if (second < 1) {
    throw new TrawlError(
      'ENCODING_FAILED',
      `The query has ${queryIds.length} tokens and leaves no room for a passage in the ${maxTokens} that the model takes. ` +
        'Shorten it, or let both be cut (longest-first).',
      { details: { queryTokens: queryIds.length, maxTokens } },
    );
  }
  return { ...tokenizer.framePair(queryIds.slice(0, first), passageIds.slice(0, second)), cut: 'tail' };
}

/** The lengths that are left, as the reference (Rust `tokenizers`) has them. */
function longestFirst(first: number, second: number, room: number): [number, number] {
  const shorter = Math.min(first, second);
  const [less, more] =
    2 * shorter > room ? [Math.floor(room / 2), Math.ceil(room / 2)] : [shorter, Math.max(shorter, room - shorter)];
  return first > second ? [more, less] : [less, more];
}
