import { ACCEPTED_RULE, CLASS_BLOCK_OF, CLASS_BLOCKS, CLASS_COUNT, NEXT_STATE } from './unicode-tables.ts';

/** Token types of Lucene's StandardTokenizer, indexed by the number of the rule that matches them. */
const TOKEN_TYPES = [
  '',
  'EMOJI',
  'NUM',
  'HANGUL',
  'KATAKANA',
  'ALPHANUM',
  'SOUTHEAST_ASIAN',
  'IDEOGRAPHIC',
  'HIRAGANA',
] as const;
export type TokenType = (typeof TOKEN_TYPES)[number];

export interface Token {
  readonly term: string;
  /** UTF-16 offsets in the text: [start, end). */
  readonly start: number;
  readonly end: number;
  readonly type: TokenType;
}

/** Lucene's limit of a match in UTF-16 units; the rest of a longer word is another token. */
const MAX_TOKEN_UNITS = 255;

/**
 * Splits a text like Lucene's StandardTokenizer (9.1 and later): takes the longest match from each position, and skips one code
 * point if no rule matches.
 */
export function standardTokens(text: string): Token[] {
  return [...eachStandardToken(text)].filter((token) => token !== null);
}

/** UTF-16 units that `eachStandardToken` reads without a token before it yields null. */
const UNITS_WITHOUT_TOKEN = 4_096;

/**
 * Finds the same tokens one at a time. Yields null after every few thousand units without a token, so that a caller can pause: a text of
 * underscores has none, and at each underscore the search reads 255 units.
 */
export function* eachStandardToken(text: string): Generator<Token | null, void> {
  let inVain = 0;
  for (let start = 0; start < text.length; ) {
    const match = longestMatch(text, start);
    if (match.rule === 0) {
      start += unitsAt(text, start);
      inVain += match.read;
      if (inVain >= UNITS_WITHOUT_TOKEN) {
        inVain = 0;
        yield null;
      }
      continue;
    }
    yield { term: text.slice(start, match.end), start, end: match.end, type: TOKEN_TYPES[match.rule]! };
    start = match.end;
  }
}

/** `read`: units that were looked at, at least as many as matched. */
function longestMatch(
  text: string,
  start: number,
): { readonly end: number; readonly rule: number; readonly read: number } {
  let state = 1;
  let end = start;
  let rule = 0;
  let at = start;
  while (at < text.length) {
    const code = text.codePointAt(at)!;
    at += code > 0xffff ? 2 : 1;
    if (at - start > MAX_TOKEN_UNITS) break;
    state = NEXT_STATE[state * CLASS_COUNT + classOf(code)]!;
    if (state === 0) break;
    if (ACCEPTED_RULE[state] !== 0) {
      end = at;
      rule = ACCEPTED_RULE[state]!;
    }
  }
  return { end, rule, read: at - start };
}

function classOf(code: number): number {
  return CLASS_BLOCKS[CLASS_BLOCK_OF[code >> 8]! * 256 + (code & 255)]!;
}

function unitsAt(text: string, at: number): number {
  return text.codePointAt(at)! > 0xffff ? 2 : 1;
}
