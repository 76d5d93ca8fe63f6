import type { TokenizerPart } from './tokenizer-file.ts';
import { cjkCharacters, marks, notNormalized, removedCharacters } from './tokenizers-unicode.ts';

/** Text in which normalisation can only change the case. */
const PLAIN_ASCII = /^[\t\n\r -~]*$/;

/** More marks in a row than any script uses. They are dropped, because canonical ordering takes quadratic time in them (UAX #15). */
const ENDLESS_MARKS = /(\p{M}{30})\p{M}+/gu;

/**
 * Normalises a text as the reference does. A comparison on every code point found that @huggingface/tokenizers 0.2 differs in four
 * points: it does not separate Chinese characters beyond U+FFFF, turns a capital sigma at the end of a word into ς instead of σ,
 * strips accents after instead of before lower-casing, and has the character classes of a newer Unicode
 * (`tokenizers-unicode.ts`).
 */
export function normalizeBertText(text: string, config: TokenizerPart): string {
  const lowercase = config.lowercase ?? true;
  if (PLAIN_ASCII.test(text)) return lowercase ? text.toLowerCase() : text;

  let result = text;
  if (config.clean_text ?? true) result = result.replace(removedCharacters, '').replace(/\s/g, ' ');
  if (config.handle_chinese_chars ?? true) result = result.replace(cjkCharacters, ' $& ');
  if (config.strip_accents ?? lowercase) result = withoutEndlessMarks(result).normalize('NFD').replace(marks, '');
  return lowercase ? lowerCased(result) : result;
}

/** Lower-cases each character by itself, as the reference does. JavaScript's result for Σ depends on its neighbours. */
export function lowerCased(text: string): string {
  return text.replaceAll('Σ', 'σ').toLowerCase();
}

export function withoutEndlessMarks(text: string): string {
  return text.replace(ENDLESS_MARKS, '$1');
}

/**
 * The normaliser of a canonical form with the reference's tables: a character that is newer than these stays as it is, and no
 * character is moved past it or composed with it. In the compatibility forms (NFKC, NFKD) more characters differ.
 */
export function canonicalForm(form: 'NFC' | 'NFD'): (text: string) => string {
  return (text) => {
    const read = withoutEndlessMarks(text);
    if (!notNormalized.test(read)) return read.normalize(form);
    return read
      .split(notNormalized)
      .map((part) => (notNormalized.test(part) ? part : part.normalize(form)))
      .join('');
  };
}

/** The `Strip` normaliser, with the white space of `splitAtWhitespace`. */
export function stripper({ strip_left, strip_right }: TokenizerPart): (text: string) => string {
  return (text) => {
    let [start, end] = [0, text.length];
    while (strip_left === true && start < end && isWhitespace(text.charAt(start))) start++;
    while (strip_right === true && start < end && isWhitespace(text.charAt(end - 1))) end--;
    return text.slice(start, end);
  };
}

function isWhitespace(character: string): boolean {
  return /\p{White_Space}/u.test(character);
}
