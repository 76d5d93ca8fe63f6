import type { CutText } from '../../search/calls/model-calls.ts';

/** The first `most` words of a text, in their spelling and spacing. A word is a run of characters without white space. */
export function cutWords(text: string, most: number): CutText {
  const word = /\S+/g;
  let end = 0;
  for (let count = 0; count < most; count++) {
    const match = word.exec(text);
    if (match === null) return { text, isCut: false };
    end = word.lastIndex;
  }
  return /\S/.test(text.slice(end)) ? { text: text.slice(0, end), isCut: true } : { text, isCut: false };
}

/** The first `most` UTF-16 units of a text, one fewer if they would end within a character. */
export function cutCharacters(text: string, most: number): CutText {
  if (text.length <= most) return { text, isCut: false };
  const unit = text.charCodeAt(most - 1);
  const splits = unit >= 0xd800 && unit <= 0xdbff;
  return { text: text.slice(0, splits ? most - 1 : most), isCut: true };
}
