import { compilePattern } from './pattern.ts';
import { type TokenizerPart, unsupported } from './tokenizer-file.ts';
import { bertWords, byteLevelWords, punctuation, whitespace, wordsAndSymbols } from './tokenizers-unicode.ts';

/** Splits a text into words. `isFirst`: the text has the first character of the whole. */
export type Splitter = (text: string, isFirst: boolean) => string[];

/** Throws MODEL_INVALID for a pre-tokenizer whose words could differ from the reference's. */
export function openSplitter(part: TokenizerPart): Splitter {
  switch (part.type) {
    case 'Sequence':
      return sequence(part.pretokenizers ?? []);
    case 'BertPreTokenizer':
      return (text) => text.match(bertWords) ?? [];
    case 'ByteLevel':
      return byteLevelSplitter(part);
    case 'WhitespaceSplit':
      return splitBy(whitespace, 'Removed');
    case 'Whitespace':
      return (text) => text.match(wordsAndSymbols) ?? [];
    case 'CharDelimiterSplit':
      return splitter(part, { String: part.delimiter }, 'Removed');
    case 'Punctuation':
      return splitBy(punctuation, behaviorOf(part, part.behavior ?? 'Isolated'));
    case 'Digits':
      return splitBy(/\p{N}/gu, part.individual_digits === true ? 'Isolated' : 'Contiguous');
    case 'Metaspace':
      return metaspaceSplitter(part);
    case 'Split':
      return splitter(part, part.pattern, behaviorOf(part, part.behavior));
    default:
      throw unsupported('pre-tokenizer', part);
  }
}

function sequence(parts: readonly TokenizerPart[]): Splitter {
  const splitters = parts.map(openSplitter);
  const late = parts
    .flatMap(partsOf)
    .slice(1)
    .find(({ type, prepend_scheme }) => type === 'Metaspace' && prepend_scheme === 'first');
  if (late !== undefined) throw unsupported('pre-tokenizer', late, ' with prepend_scheme "first" after another one');
  return (text, isFirst) => splitters.reduce((words, split) => words.flatMap((word) => split(word, isFirst)), [text]);
}

/** A pre-tokenizer, or the ones in a sequence. */
function partsOf(part: TokenizerPart): readonly TokenizerPart[] {
  return part.type === 'Sequence' ? (part.pretokenizers ?? []).flatMap(partsOf) : [part];
}

const BEHAVIORS = ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'] as const;
type Behavior = (typeof BEHAVIORS)[number];

function behaviorOf(part: TokenizerPart, behavior: string | undefined): Behavior {
  const known = BEHAVIORS.find((name) => name === behavior);
  if (known === undefined) throw unsupported('pre-tokenizer', part, ` with the behavior ${JSON.stringify(behavior)}`);
  return known;
}

function splitter(part: TokenizerPart, pattern: TokenizerPart['pattern'], behavior: Behavior): Splitter {
  const matches = compilePattern(pattern);
  if (matches !== undefined) return splitBy(matches, behavior, part.invert === true);
  throw unsupported('pre-tokenizer', part, ` with the pattern ${JSON.stringify(pattern?.Regex ?? pattern)}`);
}

/** Splits a text into the matches of a pattern and what is between them. `inverted`: the other way round. */
function splitBy(pattern: RegExp, behavior: Behavior, inverted = false): Splitter {
  return (text) => {
    const words: string[] = [];
    let wasDelimiter = false;
    const add = (word: string, isDelimiter: boolean) => {
      if (word === '') return;
      const joins =
        (behavior === 'Contiguous' && isDelimiter === wasDelimiter) ||
        (behavior === 'MergedWithPrevious' && isDelimiter && !wasDelimiter) ||
        (behavior === 'MergedWithNext' && !isDelimiter && wasDelimiter);
      wasDelimiter = isDelimiter;
      if (joins && words.length > 0) words[words.length - 1] += word;
      else if (behavior !== 'Removed' || !isDelimiter) words.push(word);
    };
    let end = 0;
    for (const { 0: match, index } of text.matchAll(pattern)) {
      add(text.slice(end, index), inverted);
      add(match, !inverted);
      end = index + match.length;
    }
    add(text.slice(end), inverted);
    return words;
  };
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
function byteLevelSplitter(config: TokenizerPart): Splitter {
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

/** Replaces spaces by `▁`, puts one in front and splits before each. */
function metaspaceSplitter(part: TokenizerPart): Splitter {
  const scheme = part.prepend_scheme ?? (part.add_prefix_space === false ? 'never' : 'always');
  if (!['always', 'first', 'never'].includes(scheme)) {
    throw unsupported('pre-tokenizer', part, ` with the prepend_scheme ${JSON.stringify(scheme)}`);
  }
  const mark = part.replacement ?? '▁';
  return (text, isFirst) => {
    const marked = text.replaceAll(' ', mark);
    const prepends = scheme === 'always' || (scheme === 'first' && isFirst);
    const whole = prepends && !marked.startsWith(mark) ? mark + marked : marked;
    if (part.split === false) return [whole];
    const [first, ...rest] = whole.split(mark);
    return [...(first === '' ? [] : [first!]), ...rest.map((word) => mark + word)];
  };
}
