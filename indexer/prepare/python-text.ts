/** White space as in Python's `str.split()` and `str.strip()`. Unlike `\s`: with U+001C to U+001F and U+0085, without U+FEFF. */
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

/** The words of a text, as offsets in the text: word i is `text.slice(starts[i], ends[i])`. */
export interface Words {
  readonly text: string;
  readonly count: number;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/** Python's `text.split()`. */
export function splitWords(text: string): Words {
  const { length } = text;
  const starts = new Int32Array((length + 1) >> 1);
  const ends = new Int32Array((length + 1) >> 1);
  let count = 0;
  let at = 0;
  for (;;) {
    while (at < length && isPythonSpace(text.charCodeAt(at))) at++;
    if (at === length) break;
    starts[count] = at;
    // The comparisons avoid the call for nearly every character.
    for (; at < length; at++) {
      const code = text.charCodeAt(at);
      if ((code <= 0x20 || code >= 0x85) && isPythonSpace(code)) break;
    }
    ends[count++] = at;
  }
  return { text, count, starts: starts.subarray(0, count), ends: ends.subarray(0, count) };
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

/** Python's `text.strip()`. */
export function pythonStrip(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isPythonSpace(text.charCodeAt(start))) start += 1;
  while (end > start && isPythonSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}
