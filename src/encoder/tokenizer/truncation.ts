import {
  composeText,
  contextOf,
  type EncoderInput,
  type QuestionAndQuery,
  type TruncateSide,
  type Truncation,
} from '../text-encoder.ts';
import type { TextTokenizer } from './tokenizer.ts';

/** Characters (UTF-16 units) that are read of a text, question or query: about 100 times what any token limit keeps. */
const MAX_CHARACTERS = 200_000;

export interface TokenizeOptions {
  /** Put before the text unchanged; must include the space that a model may expect. Its tokens count towards the limit. */
  readonly prefix: string;
  /** Token limit, special tokens included; larger than the number of special tokens. */
  readonly maxTokens: number;
  readonly truncate: TruncateSide;
}

export interface TokenizedText {
  /** Special tokens included. */
  readonly ids: readonly number[];
  /** Token type of each token (0: first text of a pair, 1: second); absent if all are 0. */
  readonly types?: readonly number[];
  readonly cut: Truncation;
}

/**
 * Composes the text of an input (`composeText`), tokenises and truncates it. Only the first 200,000 characters of a text, a question or
 * a history are read (with truncation `question`, the last history queries); a longer one counts as truncated.
 *
 * Truncation `tail` keeps the first tokens and the final special tokens, as other retrieval servers do. `question` keeps the prefix
 * and the whole query. It removes whole history queries, oldest first, and if none is left it shortens the question from its end. If
 * no token of the question would remain, the separator is removed too; if the query alone is too long, its end is removed.
 */
export function tokenizeInput(tokenizer: TextTokenizer, whole: EncoderInput, options: TokenizeOptions): TokenizedText {
  const { prefix, truncate } = options;
  const input = headOfInput(whole, truncate);
  const room = Math.max(0, options.maxTokens - tokenizer.framingTokens);
  const text = composeText(input, prefix, tokenizer.separator?.text ?? null);
  const ids = tokenizer.contentIds(text, room);
  if (ids.length <= room) return { ids: tokenizer.frame(ids), cut: input === whole ? 'nothing' : 'tail' };

  if (truncate === 'tail' || typeof input === 'string' || contextOf(input).length === 0) {
    return { ids: tokenizer.frame(ids.slice(0, room)), cut: 'tail' };
  }
  const { ids: kept, cut } = shortenContext(tokenizer, input, prefix, room);
  return { ids: tokenizer.frame(kept), cut };
}

/** The input with each part shortened to `MAX_CHARACTERS`; the same object if nothing was shortened. */
function headOfInput(input: EncoderInput, truncate: TruncateSide): EncoderInput {
  if (typeof input === 'string') return headOf(input);
  const question = headOf(input.question);
  const query = headOf(input.query);
  const given = input.history ?? [];
  const history = readHistory(given, truncate);
  const isWhole = question === input.question && query === input.query && history === given;
  return isWhole ? input : { question, query, history };
}

/** The history queries that are read: the first ones, or with truncation `question` the last ones. */
function readHistory(history: readonly string[], truncate: TruncateSide): readonly string[] {
  const inOrder = truncate === 'question' ? history.toReversed() : history;
  let characters = 0;
  const longest = inOrder.findIndex((query) => {
    characters += query.length;
    return characters > MAX_CHARACTERS;
  });
  if (longest === -1) return history;
  // A first query that is longer than everything that is read is read in part.
  const kept = longest === 0 ? [headOf(inOrder[0]!)] : inOrder.slice(0, longest);
  return truncate === 'question' ? kept.toReversed() : kept;
}

export function headOf(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  // Never splits a surrogate pair.
  const endsInHighSurrogate = /[\uD800-\uDBFF]/.test(text.charAt(MAX_CHARACTERS - 1));
  return text.slice(0, endsInHighSurrogate ? MAX_CHARACTERS - 1 : MAX_CHARACTERS);
}

/** Shortens what stands before the query of a composed text, which has more than `room` ids, so that at most `room` ids remain. */
function shortenContext(
  tokenizer: TextTokenizer,
  { question, query, history = [] }: QuestionAndQuery,
  prefix: string,
  room: number,
): { ids: number[]; cut: Truncation } {
  const { separator } = tokenizer;
  const idsOf = (text: string, atMost = room): number[] => tokenizer.contentIds(text, atMost);
  const composed = (removed: number): string =>
    composeText({ question, query, history: history.slice(removed) }, prefix, separator?.text ?? null);
  // The fewest removed history queries with which the text fits lie in (tooFew, enough].
  let tooFew = 0;
  let enough = history.length;
  while (enough - tooFew > 1) {
    const middle = (tooFew + enough) >>> 1;
    if (idsOf(composed(middle)).length <= room) enough = middle;
    else tooFew = middle;
  }
  if (history.length > 0) {
    const ids = idsOf(composed(enough));
    if (ids.length <= room) return { ids, cut: 'history' };
  }
  if (question.trim() === '') return { ids: idsOf(prefix + query).slice(0, room), cut: 'question-and-tail' };
  const { head, tail } = splitAtSeparator();
  const headRoom = room - tail.length;
  if (headRoom > idsOf(prefix).length) return { ids: [...head.slice(0, headRoom), ...tail], cut: 'question' };
  const ids = idsOf(prefix + query);
  return { ids: ids.slice(0, room), cut: ids.length > room ? 'question-and-tail' : 'question' };

  /** Splits the ids of the text without history before the separator. Exact up to `room` ids; of a longer tail only the length counts. */
  function splitAtSeparator(): { head: number[]; tail: number[] } {
    if (tokenizer.splitsAtWhitespace) {
      const tail = separator === null ? idsOf(query) : [separator.id, ...idsOf(query)];
      return { head: idsOf(prefix + question), tail };
    }
    // With other tokenizers, a part may have different ids alone and within the text, so the whole text is tokenised and split at the
    // separator. Question and query may contain separators too. Without a separator, the query is the rest after the question.
    const whole = (text: string): number[] => idsOf(text, Number.POSITIVE_INFINITY);
    const ids = whole(composed(history.length));
    const isSeparator = (id: number) => id === separator?.id;
    const separators = ids.flatMap((id, at) => (isSeparator(id) ? [at] : []));
    const start =
      separator === null
        ? whole(prefix + question).length
        : (separators[separators.length - 1 - whole(query).filter(isSeparator).length] ?? 0);
    return { head: ids.slice(0, start), tail: ids.slice(start) };
  }
}
