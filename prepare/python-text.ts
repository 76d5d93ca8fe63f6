/**
 * What Python's `str.split()` and `str.strip()` take for white space. JavaScript's `\s` has U+FEFF besides, and lacks
 * U+001C to U+001F and U+0085.
 */
export function isPythonSpace(code: number): boolean {
  if (code <= 0x20) return code === 0x20 || (code >= 0x09 && code <= 0x0d) || code >= 0x1c;
  if (code < 0x85) return false;
  return (
    code === 0x85 ||
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

/** The words of a text as `str.split()` gives them, as places in the text. */
export interface Words {
  readonly text: string;
  readonly count: number;
  /** Place of a word's first character. */
  readonly starts: readonly number[];
  /** Place behind a word's last character. */
  readonly ends: readonly number[];
}

export function splitWords(text: string): Words {
  const starts: number[] = [];
  const ends: number[] = [];
  let inside = false;
  for (let at = 0; at < text.length; at++) {
    if (isPythonSpace(text.charCodeAt(at))) {
      if (inside) ends.push(at);
      inside = false;
    } else if (!inside) {
      starts.push(at);
      inside = true;
    }
  }
  if (inside) ends.push(text.length);
  return { text, count: starts.length, starts, ends };
}

/** `" ".join(words[from:to])`. */
export function joinWords({ text, starts, ends }: Words, from: number, to: number): string {
  if (from >= to) return '';
  let joined = '';
  let pieceStart = starts[from]!;
  for (let word = from + 1; word < to; word++) {
    const gap = ends[word - 1]!;
    if (starts[word] === gap + 1 && text.charCodeAt(gap) === 0x20) continue;
    joined += `${text.slice(pieceStart, gap)} `;
    pieceStart = starts[word]!;
  }
  return joined + text.slice(pieceStart, ends[to - 1]);
}

export function pythonStrip(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isPythonSpace(text.charCodeAt(start))) start += 1;
  while (end > start && isPythonSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}
