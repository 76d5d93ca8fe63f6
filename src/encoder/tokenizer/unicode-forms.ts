import { withoutEndlessMarks } from './bert-text.ts';
import { notNormalized } from './tokenizers-unicode.ts';

/** The canonical forms, as a tokenizer.json names them. In the compatibility forms (NFKC, NFKD) more characters differ. */
const FORMS = ['NFC', 'NFD'] as const;

/**
 * The normaliser of a canonical form with the reference's tables: a character that is newer than these stays as it is, and no
 * character is moved past it or composed with it. Null for another type.
 */
export function unicodeForm(type: string | undefined): ((text: string) => string) | null {
  const form = FORMS.find((name) => name === type);
  if (form === undefined) return null;
  return (text) => {
    const read = withoutEndlessMarks(text);
    if (!notNormalized.test(read)) return read.normalize(form);
    return read
      .split(notNormalized)
      .map((part) => (notNormalized.test(part) ? part : part.normalize(form)))
      .join('');
  };
}
