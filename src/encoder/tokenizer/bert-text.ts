import { bertWords, cjkCharacters, marks, removedCharacters } from './tokenizers-unicode.ts';

/** The `normalizer` of a BERT tokenizer.json. `strip_accents: null` means the value of `lowercase`. */
export interface BertNormalizerConfig {
  readonly clean_text?: boolean | null;
  readonly handle_chinese_chars?: boolean | null;
  readonly strip_accents?: boolean | null;
  readonly lowercase?: boolean | null;
}

/** Text in which normalisation can only change the case. */
const PLAIN_ASCII = /^[\t\n\r -~]*$/;

/**
 * More combining marks in a row than any script uses. Canonical ordering takes quadratic time in their number, so the rest of the
 * run is dropped, as in the stream-safe text format of UAX #15.
 */
const ENDLESS_MARKS = /(\p{M}{30})\p{M}+/gu;

/**
 * Normalises a text as the reference does. A comparison on every code point found that @huggingface/tokenizers 0.2 differs in four
 * points: it does not separate Chinese characters beyond U+FFFF, turns a capital sigma at the end of a word into ς instead of σ,
 * strips accents after instead of before lower-casing, and has the character classes of a newer Unicode
 * (`tokenizers-unicode.ts`).
 */
export function normalizeBertText(text: string, config: BertNormalizerConfig): string {
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

/** Call it before any Unicode normalisation. */
export function withoutEndlessMarks(text: string): string {
  return text.replace(ENDLESS_MARKS, '$1');
}

/** Splits at white space; each punctuation character is a word. */
export function splitBertWords(text: string): string[] {
  return text.match(bertWords) ?? [];
}
