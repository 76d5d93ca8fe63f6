import { invalidModel } from '../model/json-file.ts';
import { anyOf } from './pattern.ts';
import type { AddedToken } from './tokenizer-file.ts';
import { afterWord, beforeWord } from './tokenizers-unicode.ts';

/** A part of a text: the id of an added token, or the text between two. */
export type AddedTokenSplit = (text: string) => (string | number)[];

/** Whether a token is found in the normalised text. */
function isNormalized({ normalized, special }: AddedToken): boolean {
  return normalized ?? special !== true;
}

/**
 * The added tokens of a tokenizer.json: `raw` are found in a text as it is, `normalized` in the normalised text.
 *
 * @param normalize the normaliser, which also changes the contents of the `normalized` tokens.
 */
export function splitsAtAddedTokens(
  tokens: readonly AddedToken[],
  normalize: (text: string) => string,
): { readonly raw: AddedTokenSplit; readonly normalized: AddedTokenSplit } {
  // Of two with one content, the special one counts.
  const inOrder = tokens.toSorted((a, b) => Number(b.special === true) - Number(a.special === true));
  const [inNormalized, inRaw] = [inOrder.filter(isNormalized), inOrder.filter((token) => !isNormalized(token))];
  return {
    raw: splitAt(inRaw.map((token) => [token.content, token])),
    normalized: splitAt(inNormalized.map((token) => [normalize(token.content), token])),
  };
}

/** Finds the leftmost token, and of several that begin there the longest. */
function splitAt(entries: readonly (readonly [string, AddedToken])[]): AddedTokenSplit {
  if (entries.length === 0) return (text) => [text];
  const tokens = new Map(entries.toReversed());
  if (tokens.has(''))
    throw invalidModel(`its added token ${JSON.stringify(tokens.get('')?.content)} is empty in a text`);
  const ambiguous = entries.find(([text, { id }]) => tokens.get(text)?.id !== id);
  if (ambiguous !== undefined) {
    const contents = [ambiguous[1], tokens.get(ambiguous[0])].map((token) => JSON.stringify(token?.content));
    throw invalidModel(
      `its added tokens ${contents.join(' and ')} become equal by its normalizer: the reference takes any`,
    );
  }
  const matcher = new RegExp(anyOf([...tokens.keys()]), 'g');
  return (text) => {
    const parts: (string | number)[] = [];
    let end = 0;
    for (const { 0: match, index } of text.matchAll(matcher)) {
      const token = tokens.get(match)!;
      let [start, stop] = [index, index + match.length];
      if (token.single_word === true && (isAt(afterWord, text, start) || isAt(beforeWord, text, stop))) continue;
      if (token.lstrip === true) {
        while (start > end && isWhitespace(text.charAt(start - 1))) start--;
        start = Math.max(start, end);
      }
      if (token.rstrip === true) while (stop < text.length && isWhitespace(text.charAt(stop))) stop++;
      // The token before it has taken it as white space.
      if (start >= stop) continue;
      if (start > end) parts.push(text.slice(end, start));
      parts.push(token.id);
      end = stop;
    }
    if (end < text.length) parts.push(text.slice(end));
    return parts;
  };
}

function isAt(pattern: RegExp, text: string, position: number): boolean {
  pattern.lastIndex = position;
  return pattern.test(text);
}

function isWhitespace(character: string): boolean {
  return /\p{White_Space}/u.test(character);
}
