import type { TokenizerPattern } from './tokenizer-file.ts';
import { bracketClasses, patternClasses } from './tokenizers-unicode.ts';

const CLASS = String.raw`\\p\{[LNPSM]\}|\\[sSwWdDrnt]`;
const LITERAL = String.raw`[\p{L}\p{N}'",:;<>=!@#%~\x60_\/ ]|\\[\^$\\.*+?()\[\]{}|\/]`;
const INSIDE = String.raw`[\p{L}\p{N}]-[\p{L}\p{N}]|[\p{L}\p{N}'",:;<>=!@#%\x60_ .?*+$]|\\[\^$\\.*+?()\[\]{}|\/\-]`;
/** Letters that have another case of several letters in the reference: ß is one of ss. */
const JOINED = '(?![^()]*(?:ss|st|f[fil]))';

const ATOM = String.raw`(?:${CLASS}|${LITERAL}|\[\^?(?:${CLASS}|${INSIDE})+\])`;
/** Nothing that could fail comes after a quantifier: a search takes linear time. */
const ATOMS = String.raw`${ATOM}+(?:\?${ATOM}+)?(?:(?:[?+*]|\{\d{1,2}(?:,\d{0,2})?\})(?:${ATOM}[?*])?)?`;
/** The end of the published patterns. Its last part takes all white space at which the others fail. */
const SPACES = String.raw`(?:\\s\*\[\\r\\n\]\+\|)?\\s\+\(\?!\\S\)\|\\s\+`;
const PART = String.raw`(?:${SPACES}|${ATOMS}|\(\?i:${JOINED}[a-z'|]*\))`;

/** What a pattern may consist of: what means the same in the reference and in JavaScript. */
const UNDERSTOOD = new RegExp(String.raw`^${PART}(?:\|${PART})*$`, 'u');

/** The matches of a `Replace` or `Split`. Undefined for a pattern that may mean something else in the reference, or take endless time. */
export function compilePattern({ Regex: source, String: text }: TokenizerPattern = {}): RegExp | undefined {
  if (text !== undefined) return text === '' ? undefined : new RegExp(anyOf([text]), 'gu');
  if (source === undefined || !UNDERSTOOD.test(source)) return undefined;
  const exact = source
    .replace(/\(\?i:([^()]*)\)/g, (_, letters: string) => `(?:${letters.replace(/[a-z]/g, eitherCase)})`)
    .replace(/\[(?:\\.|[^\]\\])*\]|\\p\{.\}|\\./gu, (part) =>
      part.startsWith('[')
        ? part.replace(/\\p\{.\}|\\./gu, (name) => bracketClasses[name] ?? name)
        : (patternClasses[part] ?? part),
    );
  try {
    // The two treat a match of nothing differently.
    return new RegExp(exact, 'v').test('') ? undefined : new RegExp(exact, 'gv');
  } catch {
    // A range from z to a, for example.
    return undefined;
  }
}

/** The source of a regular expression that matches the longest of the texts. */
export function anyOf(texts: readonly string[]): string {
  return texts
    .toSorted((a, b) => b.length - a.length)
    .map((text) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'))
    .join('|');
}

/** A letter without regard to case: ſ and K are other cases of s and k. Node.js 22 has no `(?i:…)`. */
function eitherCase(letter: string): string {
  const others: Readonly<Record<string, string>> = { s: '\u017f', k: '\u212a' };
  return `[${letter}${letter.toUpperCase()}${others[letter] ?? ''}]`;
}
