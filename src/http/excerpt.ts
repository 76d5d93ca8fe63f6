/** Words of a query that are in every other passage tell no place. */
const MIN_WORD = 3;
const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const ELLIPSIS = '…';

export interface Excerpt {
  readonly text: string;
  /** Whether `text` is all there was. */
  readonly whole: boolean;
}

/**
 * At most `maxCharacters` UTF-16 units of a text, ellipses included, from where most different words of the query stand
 * together; its beginning where none does. Cut at white space where there is some near, never inside a character.
 */
export function excerpt(text: string, query: string, maxCharacters: number): Excerpt {
  if (text.length <= maxCharacters) return { text, whole: true };
  const room = Math.max(0, maxCharacters - 2 * ELLIPSIS.length);
  const [first, last] = bestWindow(text, new Set(words(query).map(({ word }) => word)), room);
  // The words found stand in the middle, as far as the text goes.
  const spare = room - (last - first);
  const from = Math.max(0, Math.min(first - Math.floor(spare / 2), text.length - room));
  const start = from === 0 ? 0 : afterSpace(text, from, first);
  const end = start + room >= text.length ? text.length : beforeSpace(text, start + room, Math.max(last, start));
  const cut = text.slice(start, end).trim();
  return { text: `${start === 0 ? '' : ELLIPSIS}${cut}${end === text.length ? '' : ELLIPSIS}`, whole: false };
}

interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

function words(text: string): Word[] {
  return Array.from(text.matchAll(WORD), (match) => ({
    word: match[0].toLowerCase(),
    start: match.index,
    end: match.index + match[0].length,
  })).filter(({ word }) => word.length >= MIN_WORD || /\p{N}|[^\p{ASCII}]/u.test(word));
}

/** Where the first window of `room` characters with most different words of `wanted` begins and ends. */
function bestWindow(text: string, wanted: ReadonlySet<string>, room: number): [number, number] {
  const found = words(text).filter(({ word, start, end }) => wanted.has(word) && end - start <= room);
  const inside = new Map<string, number>();
  let best: [number, number] = [0, 0];
  let most = 0;
  let left = 0;
  for (const { word, end } of found) {
    inside.set(word, (inside.get(word) ?? 0) + 1);
    while (end - found[left]!.start > room) {
      const gone = found[left++]!.word;
      const count = inside.get(gone)! - 1;
      if (count === 0) inside.delete(gone);
      else inside.set(gone, count);
    }
    if (inside.size > most) {
      most = inside.size;
      best = [found[left]!.start, end];
    }
  }
  return best;
}

/** The first place after white space in [from, limit]; else `from`, not inside a surrogate pair. */
function afterSpace(text: string, from: number, limit: number): number {
  for (let at = from; at <= limit; at++) if (/\s/.test(text.charAt(at - 1))) return at;
  return isLowSurrogate(text, from) ? from + 1 : from;
}

/** The last place before white space in [limit, from]; else `from`, not inside a surrogate pair. */
function beforeSpace(text: string, from: number, limit: number): number {
  for (let at = from; at >= limit && at > 0; at--) if (/\s/.test(text.charAt(at))) return at;
  return isLowSurrogate(text, from) ? from - 1 : from;
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
