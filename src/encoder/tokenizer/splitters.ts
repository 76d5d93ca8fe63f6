import type { TokenizerPart } from './tokenizer-file.ts';
import { bertWords, byteLevelWords, patternClasses, whitespace } from './tokenizers-unicode.ts';

type Splitter = (text: string) => string[];

/** Splits at white space; each punctuation character is a word. */
export function splitBertWords(text: string): string[] {
  return text.match(bertWords) ?? [];
}

const utf8 = new TextEncoder();

/** GPT-2's printable characters for the 256 bytes: visible Latin-1 characters stand for themselves. */
const BYTE_CHARACTERS: readonly string[] = (() => {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const visible = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCharCode(visible ? byte : next++);
  });
})();

/** Splits by GPT-2's pattern with the reference's character classes and replaces each byte by its character. */
export function byteLevelSplitter(config: TokenizerPart): Splitter {
  const addSpace = config.add_prefix_space ?? true;
  const useRegex = config.use_regex ?? true;
  return (text) => {
    const whole = addSpace && !text.startsWith(' ') ? ` ${text}` : text;
    return (useRegex ? (whole.match(byteLevelWords) ?? []) : [whole]).map(asByteCharacters);
  };
}

function asByteCharacters(word: string): string {
  if (/^[ -~]*$/.test(word)) return word.replaceAll(' ', BYTE_CHARACTERS[0x20]!);
  let result = '';
  for (const byte of utf8.encode(word)) result += BYTE_CHARACTERS[byte];
  return result;
}

/** Splits at Unicode white space, as Rust does. JavaScript's `\s` includes U+FEFF and lacks U+0085. */
export function splitAtWhitespace(text: string): string[] {
  return text.split(whitespace).filter((word) => word !== '');
}

/** Replaces spaces by `▁`, puts one in front and splits before each. Undefined if the rule depends on the position in the text. */
export function metaspaceSplitter(config: TokenizerPart): Splitter | undefined {
  const scheme = config.prepend_scheme ?? (config.add_prefix_space === false ? 'never' : 'always');
  if (scheme === 'first') return undefined;
  const mark = config.replacement ?? '▁';
  return (text) => {
    const marked = text.replaceAll(' ', mark);
    const whole = scheme === 'always' && !marked.startsWith(mark) ? mark + marked : marked;
    if (config.split === false) return [whole];
    const [first, ...rest] = whole.split(mark);
    return [...(first === '' ? [] : [first!]), ...rest.map((word) => mark + word)];
  };
}

/** What a pattern may consist of: literals, classes, groups and quantifiers that mean the same in the reference and in JavaScript. */
const UNDERSTOOD =
  /^(?:\\p\{[LN]\}|\\[sSrn]|\(\?i:[a-z'|]*\)|\(\?[!:=]|\{\d+(?:,\d*)?\}|[a-zA-Z0-9'| ()?+*]|\[\^?(?:\\p\{[LN]\}|\\[srn])+\])+$/;

/** Splits a text into the matches of the pattern and what is between them. Undefined for another behaviour, or a pattern of other parts. */
export function patternSplitter({ pattern, behavior, invert }: TokenizerPart): Splitter | undefined {
  const source = pattern?.Regex;
  if (source === undefined || behavior !== 'Isolated' || invert === true || !UNDERSTOOD.test(source)) {
    return undefined;
  }
  const exact = source
    .replace(/\(\?i:([^()]*)\)/g, (_, letters: string) => `(?:${letters.replace(/[a-z]/g, eitherCase)})`)
    .replace(/\\(?:p\{[LN]\}|[sS])/g, (name) => patternClasses[name]!);
  const matcher = new RegExp(exact, 'gv');
  return (text) => {
    const parts: string[] = [];
    let end = 0;
    for (const { 0: match, index } of text.matchAll(matcher)) {
      if (index > end) parts.push(text.slice(end, index));
      if (match !== '') parts.push(match);
      end = index + match.length;
    }
    if (end < text.length) parts.push(text.slice(end));
    return parts;
  };
}

/** A letter without regard to case: ſ and K are other cases of s and k. Node.js 22 has no `(?i:…)`. */
function eitherCase(letter: string): string {
  const others: Readonly<Record<string, string>> = { s: '\u017f', k: '\u212a' };
  return `[${letter}${letter.toUpperCase()}${others[letter] ?? ''}]`;
}
