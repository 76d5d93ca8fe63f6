import type { TokenizerPattern } from './tokenizer-file.ts';
import { bracketClasses, patternClasses } from './tokenizers-unicode.ts';

const CLASS = String.raw`\\p\{[LNPSM]\}|\\[sSwWdDrnt]`;
const LITERAL = String.raw`[\p{L}\p{N}'",:;<>=!@#%~\x60_\/ ]|\\[\^$\\.*+?()\[\]{}|\/]`;
const INSIDE = String.raw`[\p{L}\p{N}]-[\p{L}\p{N}]|[\p{L}\p{N}'",:;<>=!@#%\x60_ .?*+$]|\\[\^$\\.*+?()\[\]{}|\/\-]`;
/** Letters that have another case of several letters in the reference: ß is one of ss. */
const JOINED = '(?![^()]*(?:ss|st|f[fil]))';

/** What a pattern may consist of: literals, classes, groups and quantifiers that mean the same in the reference and in JavaScript. */
const UNDERSTOOD = new RegExp(
  String.raw`^(?:${CLASS}|${LITERAL}|\(\?i:${JOINED}[a-z'|]*\)|\(\?[!:=]|\{\d+(?:,\d*)?\}|\((?!\?)|[)?+*|]|\[\^?(?:${CLASS}|${INSIDE})+\])+$`,
  'u',
);

/** The matches of a `Replace` or `Split`. Undefined for a pattern that may mean something else in the reference. */
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
    // The two treat a match of nothing differently, which a lookahead alone would be, too.
    const canBeEmpty = new RegExp(exact.replace(/\(\?[!=][^()]*\)/g, ''), 'v').test('');
    return canBeEmpty ? undefined : new RegExp(exact, 'gv');
  } catch {
    // The reference's possessive quantifiers, for example.
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
