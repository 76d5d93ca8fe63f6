const APOSTROPHES = /[‘’‚‛′`´ʹʼ＇]/gu;
const QUOTES = /[“”„‟″«»＂]/gu;
const DASHES = /[\p{Pd}−]/gu;
/** A character of a script that is written without spaces between words, with its marks. */
const UNSPACED = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}]\p{M}*/gu;

/** A text in which answers are looked for whatever its typography: one kind of quotes and dashes, NFKC, unspaced scripts by characters. */
export function foldedText(text: string): string {
  // The quotes go first, because NFKC makes a space and a combining accent of some.
  const folded = text.replace(APOSTROPHES, "'").replace(QUOTES, '"').replace(DASHES, '-');
  return byCharacters(folded.normalize('NFKC'));
}

/** Puts spaces around each character of Chinese, Japanese and Thai, so that it is a word of its own. */
export function byCharacters(text: string): string {
  return text.replace(UNSPACED, ' $& ');
}
