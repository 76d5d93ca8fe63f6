/** Quotation marks of all kinds, apostrophes and accents that stand for them. */
const QUOTES = /[\p{Pi}\p{Pf}"'`´„‚′″＂＇]/gu;
const SPACES = /[\s\p{Z}\p{C}]+/gu;

/**
 * A text for comparisons, without what copies of it often differ in: Unicode compatibility forms (NFKC), letter case, quotation marks,
 * and the kind and number of spaces and control characters.
 */
export function comparableText(text: string): string {
  // The quotes go first, because NFKC makes a space and a combining accent of some; and again, because it makes quotes of others.
  const folded = text.replace(QUOTES, '').normalize('NFKC').toLowerCase().normalize('NFKC').replace(QUOTES, '');
  return folded.normalize('NFKC').replace(SPACES, ' ').trim();
}

/**
 * The comparable text of a passage without its title, so that copies under another title are equal; of the contents for a passage that
 * is nothing but a title.
 */
export function comparableBody({ text, contents }: { readonly text: string; readonly contents: string }): string {
  return comparableText(text) || comparableText(contents);
}
