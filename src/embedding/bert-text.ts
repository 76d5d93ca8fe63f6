import { bertWords, cjkCharacters, marks, removedCharacters } from './tokenizers-unicode.ts';

/** The `normalizer` of a BERT tokenizer.json. `strip_accents: null` means: as `lowercase`. */
export interface BertNormalizerConfig {
  readonly clean_text?: boolean | null;
  readonly handle_chinese_chars?: boolean | null;
  readonly strip_accents?: boolean | null;
  readonly lowercase?: boolean | null;
}

/** Text on which normalisation does nothing but change case. */
const PLAIN_ASCII = /^[\t\n\r -~]*$/;

/**
 * More combining marks in a row than any script uses. Putting them in canonical order takes time in the square of their
 * number, so the rest of such a run is dropped (as in the stream-safe text of UAX #15).
 */
const ENDLESS_MARKS = /(\p{M}{30})\p{M}+/gu;

/**
 * What the reference does to a text before it is split into words. @huggingface/tokenizers 0.2 differs in four points,
 * found by asking both about every code point: Chinese characters beyond U+FFFF are not made words of their own, a
 * capital sigma at a word's end becomes ς and not σ, accents are stripped after lower-casing instead of before, and the
 * character classes are those of a newer Unicode (`tokenizers-unicode.ts`).
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

/** Case is changed character by character there: no look at the neighbours, which JavaScript gives to Σ alone. */
export function lowerCased(text: string): string {
  return text.replaceAll('Σ', 'σ').toLowerCase();
}

/** To be called before any Unicode normalisation. */
export function withoutEndlessMarks(text: string): string {
  return text.replace(ENDLESS_MARKS, '$1');
}

/** Splits at whitespace and makes every punctuation character a word. */
export function splitBertWords(text: string): string[] {
  return text.match(bertWords) ?? [];
}
