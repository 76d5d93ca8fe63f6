/** Orders texts by their UTF-8 bytes, for `sort`. UTF-16 units sort surrogates, whose characters come last, before U+E000 to U+FFFF. */
export function compareUtf8(a: string, b: string): number {
  const limit = Math.min(a.length, b.length);
  let i = 0;
  while (i < limit && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  return i === limit ? a.length - b.length : utf8Rank(a.charCodeAt(i)) - utf8Rank(b.charCodeAt(i));
}

function utf8Rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

/** Quotation marks of all kinds, apostrophes and accents that stand for them. */
const QUOTES = /[\p{Pi}\p{Pf}"'`´„‚′″＂＇]/gu;
const SPACES = /[\s\p{Z}\p{C}]+/gu;

/**
 * Normalizes a text for comparisons. Removes what copies of a text often differ in: Unicode compatibility forms (NFKC), letter case,
 * quotation marks, and the kind and number of spaces and control characters.
 */
export function comparableText(text: string): string {
  // The quotes go first, because NFKC makes a space and a combining accent of some; and again, because it makes quotes of others.
  const folded = text.replace(QUOTES, '').normalize('NFKC').toLowerCase().normalize('NFKC').replace(QUOTES, '');
  return folded.normalize('NFKC').replace(SPACES, ' ').trim();
}

/**
 * The comparable text of a passage without its title, so that copies under another title are equal. A passage that is only a title is
 * compared by its contents.
 */
export function comparableBody({ text, contents }: { readonly text: string; readonly contents: string }): string {
  return comparableText(text) || comparableText(contents);
}
