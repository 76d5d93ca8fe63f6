import { TrawlError } from '../../base/errors.ts';
import type { PairTemplate } from '../model/pair-template.ts';
import type { QueryAndPassage } from './text-pair.ts';
import type { TextTokenizer } from './tokenizer.ts';
import { headOf, type TokenizedText } from './truncation.ts';

/**
 * Token ids of a pair within its template. Of a pair over the limit the passage is truncated; a query that alone fills the room is
 * truncated too, unless only the passage may be, and leaves the passage one token. The template is kept whole.
 *
 * @throws TrawlError ENCODING_FAILED if no room is left for query or passage.
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
    throw new TrawlError(
      'ENCODING_FAILED',
      `The query has ${first.length} tokens, which leaves no room for a passage: the limit of the model is ${maxTokens}, of which ` +
        `its prompt takes ${before.length + after.length}. Shorten the query, or truncate both texts (longest-first).`,
      { details: { queryTokens: first.length, maxTokens } },
    );
  }
  const shortened =
    kept === first.length ? first : [...idsOf(startSpace + query).slice(0, kept - marker.length), ...marker];
  return { ids: framed(shortened, second.slice(0, left)), cut: 'tail' };
}

function withoutLastSpace(text: string): readonly [string, string] {
  return text.endsWith(' ') ? [text.slice(0, -1), ' '] : [text, ''];
}
