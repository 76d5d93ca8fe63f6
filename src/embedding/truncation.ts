import {
  type Cut,
  composeText,
  type EncoderInput,
  type QuestionAndQuery,
  questionAndQuery,
  type TruncateSide,
} from './text-encoder.ts';
import type { TextTokenizer } from './tokenizer.ts';

/**
 * Characters (UTF-16 units) of a text or of a question that are looked at: some hundred times what any limit in tokens
 * lets through. It bounds the time that a text without a word's end can take.
 */
const MAX_CHARACTERS = 200_000;

export interface TokenLimits {
  /** Put before the text as it is, a space included where the model wants one; counts towards the limit. */
  readonly prefix: string;
  /** Special tokens included; at least one more than the tokenizer's framing. */
  readonly maxTokens: number;
  readonly truncate: TruncateSide;
}

export interface TokenizedText {
  /** Special tokens included. */
  readonly ids: readonly number[];
  /** Of a pair: for each token which text it is of. */
  readonly types?: readonly number[];
  /** What was lost because the text had more tokens than the limit. */
  readonly cut: Cut;
}

/**
 * Prefix, composition, tokens, limit: what the model sees of an input. A question with its query becomes
 * `{prefix}{question} [SEP] {query}`, one space each side; a blank question is no question.
 *
 * Of a text or question of more than 200,000 characters the rest is not looked at, and it counts as truncated.
 *
 * Over the limit, `tail` keeps the first tokens and the final special ones, as the peers do. `question` keeps the prefix
 * and every token of the query, and shortens the question from its end; where not one token of the question would
 * remain, it goes with its separator, and the query, if it is too long by itself, loses its tail.
 */
export function tokenizeInput(tokenizer: TextTokenizer, whole: EncoderInput, limits: TokenLimits): TokenizedText {
  const { prefix, truncate } = limits;
  const input = withinReach(whole);
  const room = Math.max(0, limits.maxTokens - tokenizer.framingTokens);
  const text = composeText(input, prefix, tokenizer.separator?.text ?? null);
  const ids = tokenizer.contentIds(text, room);
  if (ids.length <= room) return { ids: tokenizer.frame(ids), cut: input === whole ? 'nothing' : 'tail' };

  const pair = truncate === 'question' ? questionAndQuery(input) : null;
  if (pair === null) return { ids: tokenizer.frame(ids.slice(0, room)), cut: 'tail' };
  const { ids: kept, cut } = shortenQuestion(tokenizer, pair, prefix, room);
  return { ids: tokenizer.frame(kept), cut };
}

/** The input itself, or one with its parts cut to what is looked at. */
function withinReach(input: EncoderInput): EncoderInput {
  if (typeof input === 'string') return headOf(input);
  const question = headOf(input.question);
  const query = headOf(input.query);
  return question === input.question && query === input.query ? input : { question, query };
}

/** The part of a text that is looked at. */
export function headOf(text: string): string {
  if (text.length <= MAX_CHARACTERS) return text;
  // Not between the halves of a character beyond U+FFFF.
  const isHalf = /[\uD800-\uDBFF]/.test(text.charAt(MAX_CHARACTERS - 1));
  return text.slice(0, isHalf ? MAX_CHARACTERS - 1 : MAX_CHARACTERS);
}

/** Ids, at most `room`, of a composed text that has more. */
function shortenQuestion(
  tokenizer: TextTokenizer,
  input: QuestionAndQuery,
  prefix: string,
  room: number,
): { ids: number[]; cut: Cut } {
  const { head, tail } = splitAtSeparator(tokenizer, input, prefix, room);
  const headRoom = room - tail.length;
  const prefixTokens = tokenizer.contentIds(prefix, room).length;
  if (headRoom > prefixTokens) return { ids: [...head.slice(0, headRoom), ...tail], cut: 'question' };
  const ids = tokenizer.contentIds(prefix + input.query, room);
  return { ids: ids.slice(0, room), cut: ids.length > room ? 'question-and-tail' : 'question' };
}

/**
 * The composed text's ids before the separator, and from it on. Each part holds enough of its head to fill `room`; a
 * tail longer than the room is all that its reader needs to know of it.
 */
function splitAtSeparator(
  tokenizer: TextTokenizer,
  input: QuestionAndQuery,
  prefix: string,
  room: number,
): { head: number[]; tail: number[] } {
  const separator = tokenizer.separator;
  if (tokenizer.splitsAtWhitespace) {
    const query = tokenizer.contentIds(input.query, room);
    const tail = separator === null ? query : [separator.id, ...query];
    return { head: tokenizer.contentIds(prefix + input.question, room), tail };
  }
  // Elsewhere parts tokenised alone may differ from the same within the whole: cut the whole at the separator, which
  // may stand in the question and in the query too. Without a separator the query is what is left after the question.
  const text = composeText(input, prefix, separator?.text ?? null);
  const ids = tokenizer.contentIds(text, Number.POSITIVE_INFINITY);
  if (separator === null) {
    const start = tokenizer.contentIds(prefix + input.question, Number.POSITIVE_INFINITY).length;
    return { head: ids.slice(0, start), tail: ids.slice(start) };
  }
  const isSeparator = (id: number) => id === separator.id;
  const after = tokenizer.contentIds(input.query, Number.POSITIVE_INFINITY).filter(isSeparator).length;
  const places = ids.flatMap((id, at) => (isSeparator(id) ? [at] : []));
  const start = places[places.length - 1 - after] ?? 0;
  return { head: ids.slice(0, start), tail: ids.slice(start) };
}
