/** Shorter words of a query, such as articles, are too frequent to locate a passage's relevant part. */
const MIN_WORD = 3;
/** Bounded, because a match of millions of letters would overflow the stack of the regular expression. */
const WORD = /[\p{L}\p{N}\p{M}]{1,1000}/gu;
const ELLIPSIS = '…';

export interface Excerpt {
  readonly text: string;
  /** Whether `text` is the complete text. */
  readonly whole: boolean;
}

/**
 * At most `maxCharacters` UTF-16 units of a text, ellipses included: the part with the most distinct wanted words, or the
 * beginning if it has none. It is cut at white space if possible, and never inside a character.
 */
export function excerpt(text: string, wanted: ReadonlySet<string>, maxCharacters: number): Excerpt {
  if (text.length <= maxCharacters) return { text, whole: true };
  const room = Math.max(0, maxCharacters - 2 * ELLIPSIS.length);
  const [first, last] = bestWindow(text, wanted, room);
  // Centres the found words, as far as the text allows.
  const spare = room - (last - first);
  const from = Math.max(0, Math.min(first - Math.floor(spare / 2), text.length - room));
  const start = from === 0 ? 0 : afterSpace(text, from, first);
  const end = start + room >= text.length ? text.length : beforeSpace(text, start + room, Math.max(last, start));
  const part = text.slice(start, end).trim();
  return { text: `${start === 0 ? '' : ELLIPSIS}${part}${end === text.length ? '' : ELLIPSIS}`, whole: false };
}

/** The words of a query that an excerpt should contain, in lower case. */
export function wordsOf(query: string): ReadonlySet<string> {
  return new Set(words(query).map(({ word }) => word));
}

function words(text: string) {
  return Array.from(text.matchAll(WORD), (match) => ({
    word: match[0].toLowerCase(),
    start: match.index,
    end: match.index + match[0].length,
  })).filter(({ word }) => word.length >= MIN_WORD || /\p{N}|[^\p{ASCII}]/u.test(word));
}

/** Start and end of the first window of at most `room` characters with the most distinct words of `wanted`. */
function bestWindow(text: string, wanted: ReadonlySet<string>, room: number): [number, number] {
  const found = words(text).filter(({ word, start, end }) => wanted.has(word) && end - start <= room);
  const inside = new Map<string, number>();
  let best: [number, number] = [0, 0];
  let most = 0;
  let left = 0;
  for (const { word, end } of found) {
    inside.set(word, (inside.get(word) ?? 0) + 1);
    while (end - found[left]!.start > room) {
      const leaving = found[left++]!.word;
      const count = inside.get(leaving)! - 1;
      if (count === 0) inside.delete(leaving);
      else inside.set(leaving, count);
    }
    if (inside.size > most) {
      most = inside.size;
      best = [found[left]!.start, end];
    }
  }
  return best;
}

/** The first position after white space in [from, limit]; without white space `from`, moved out of a surrogate pair. */
function afterSpace(text: string, from: number, limit: number): number {
  for (let at = from; at <= limit; at++) if (/\s/.test(text.charAt(at - 1))) return at;
  return isLowSurrogate(text, from) ? from + 1 : from;
}

/** The last position before white space in [limit, from]; without white space `from`, moved out of a surrogate pair. */
function beforeSpace(text: string, from: number, limit: number): number {
  for (let at = from; at >= limit && at > 0; at--) if (/\s/.test(text.charAt(at))) return at;
  return isLowSurrogate(text, from) ? from - 1 : from;
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
