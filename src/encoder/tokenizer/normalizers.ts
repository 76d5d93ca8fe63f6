import { compilePattern } from './pattern.ts';
import { precompiledNormalizer } from './precompiled-charsmap.ts';
import { type TokenizerPart, unsupported } from './tokenizer-file.ts';
import {
  accents,
  cjkCharacters,
  marks,
  notCompatible,
  notNormalized,
  removedCharacters,
} from './tokenizers-unicode.ts';

type Normalizer = (text: string) => string;

/** Text in which normalisation can only change the case, and white space to spaces. */
const PLAIN_ASCII = /^[\t\n\r -~]*$/;

const MOST_GROWTH = 100;

/** More marks in a row than any script uses. They are dropped, because canonical ordering takes quadratic time in them (UAX #15). */
const ENDLESS_MARKS = /(\p{M}{30})\p{M}+/gu;

/** Throws MODEL_INVALID for a normaliser whose result could differ from the reference's. */
export function openNormalizer(part: TokenizerPart): Normalizer {
  if (growthOf(part) > MOST_GROWTH)
    throw unsupported('normalizer', part, `: it makes a text more than ${MOST_GROWTH} times as long`);
  switch (part.type) {
    case 'Sequence': {
      const normalizers = (part.normalizers ?? []).map(openNormalizer);
      return (text) => normalizers.reduce((result, normalize) => normalize(result), text);
    }
    case 'BertNormalizer':
      return (text) => normalizeBertText(text, part);
    case 'Precompiled':
      return precompiledNormalizer(part.precompiled_charsmap ?? '');
    case 'Strip':
      return stripper(part);
    case 'StripAccents':
      return (text) => text.replace(accents, '');
    case 'Lowercase':
      return lowerCased;
    case 'NFC':
    case 'NFD':
    case 'NFKC':
    case 'NFKD':
      return normalForm(part.type);
    case 'Replace':
      return replacer(part);
    case 'Prepend':
      return (text) => (text === '' ? '' : (part.prepend ?? '') + text);
    default:
      throw unsupported('normalizer', part);
  }
}

/** By how much a `Replace`, or several after each other, may lengthen a text. */
function growthOf({ type, normalizers = [], pattern, content = '' }: TokenizerPart): number {
  if (type === 'Sequence') return normalizers.map(growthOf).reduce((product, growth) => product * growth, 1);
  return type === 'Replace' ? Math.max(1, content.length / (pattern?.String?.length ?? 1)) : 1;
}

function replacer(part: TokenizerPart): Normalizer {
  const { pattern, content = '' } = part;
  const matches = compilePattern(pattern);
  if (matches === undefined) throw unsupported('normalizer', part, ` with the pattern ${JSON.stringify(pattern)}`);
  return (text) => text.replace(matches, () => content);
}

function normalizeBertText(text: string, config: TokenizerPart): string {
  const lowercase = config.lowercase ?? true;
  const cleans = config.clean_text ?? true;
  if (PLAIN_ASCII.test(text)) {
    const spaced = cleans ? text.replace(/[\t\n\r]/g, ' ') : text;
    return lowercase ? spaced.toLowerCase() : spaced;
  }
  let result = text;
  if (cleans) result = result.replace(removedCharacters, '').replace(/\s/g, ' ');
  if (config.handle_chinese_chars ?? true) result = result.replace(cjkCharacters, ' $& ');
  if (config.strip_accents ?? lowercase) result = decomposed(result).replace(marks, '');
  return lowercase ? lowerCased(result) : result;
}

/** Lower-cases each character by itself, as the reference does. JavaScript's result for Σ depends on its neighbours. */
function lowerCased(text: string): string {
  return text.replaceAll('Σ', 'σ').toLowerCase();
}

function withoutEndlessMarks(text: string): string {
  return text.replace(ENDLESS_MARKS, '$1');
}

/**
 * The normaliser of a Unicode form with the reference's tables: a character that is newer than these stays as it is, and no character is
 * moved past it or composed with it.
 */
function normalForm(form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'): Normalizer {
  const newer = form.startsWith('NFK') ? notCompatible : notNormalized;
  return (text) => {
    const read = withoutEndlessMarks(text);
    if (!newer.test(read)) return read.normalize(form);
    return read
      .split(newer)
      .map((part) => (newer.test(part) ? part : part.normalize(form)))
      .join('');
  };
}

const decomposed = normalForm('NFD');

/** The `Strip` normaliser, with Unicode's white space. */
function stripper({ strip_left, strip_right }: TokenizerPart): Normalizer {
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
