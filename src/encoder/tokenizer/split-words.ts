import { byteLevelWords, whitespace } from './tokenizers-unicode.ts';

/** The `ByteLevel` pre-tokenizer of a tokenizer.json (GPT-2, RoBERTa). */
export interface ByteLevelConfig {
  readonly add_prefix_space?: boolean;
  readonly use_regex?: boolean;
}

/** The `Metaspace` pre-tokenizer. Files from before 2023 have `add_prefix_space` instead of `prepend_scheme`. */
export interface MetaspaceConfig {
  readonly replacement?: string;
  readonly prepend_scheme?: 'always' | 'first' | 'never';
  readonly add_prefix_space?: boolean;
  readonly split?: boolean;
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
export function byteLevelSplitter(config: ByteLevelConfig): (text: string) => string[] {
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

/** The `Strip` normaliser, with the white space of `splitAtWhitespace`. */
export function stripper(config: {
  readonly strip_left?: boolean;
  readonly strip_right?: boolean;
}): (text: string) => string {
  return (text) => {
    let [start, end] = [0, text.length];
    while (config.strip_left === true && start < end && isWhitespace(text.charAt(start))) start++;
    while (config.strip_right === true && start < end && isWhitespace(text.charAt(end - 1))) end--;
    return text.slice(start, end);
  };
}

function isWhitespace(character: string): boolean {
  return /\p{White_Space}/u.test(character);
}

/** Replaces spaces by `▁`, puts one in front and splits before each. Null if the rule depends on the position in the text. */
export function metaspaceSplitter(config: MetaspaceConfig): ((text: string) => string[]) | null {
  const scheme = config.prepend_scheme ?? (config.add_prefix_space === false ? 'never' : 'always');
  if (scheme === 'first') return null;
  const mark = config.replacement ?? '▁';
  return (text) => {
    const marked = text.replaceAll(' ', mark);
    const whole = scheme === 'always' && !marked.startsWith(mark) ? mark + marked : marked;
    if (config.split === false) return [whole];
    const [first, ...rest] = whole.split(mark);
    return [...(first === '' ? [] : [first!]), ...rest.map((word) => mark + word)];
  };
}
