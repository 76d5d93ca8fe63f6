/** Replaces lone surrogates, which JSON can have as escapes, as UTF-8 does. Texts are stored and compared as UTF-8. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}
