import { jsonExcerpt } from '../../base/objects.ts';
import { invalidModel } from '../model/json-file.ts';
import { MOST_IDS, type ModelPart, unsupported } from './tokenizer-file.ts';

/** Words with more characters are not kept, nor more words than this. */
const CACHED_CHARACTERS = 256;
const CACHED_WORDS = 10_000;

const utf8 = new TextEncoder();

/**
 * A BPE model: joins the characters of a word by the list of merges, the first of the list first, and of equal ones the leftmost. A character
 * that is not in the vocabulary becomes its bytes, or the unknown token, or nothing.
 */
export function bytePairEncoder(part: ModelPart, vocabulary: ReadonlyMap<string, number>): (word: string) => number[] {
  const { continuing_subword_prefix: prefix, end_of_word_suffix: suffix, unk_token: unknownToken, merges = [] } = part;
  if (prefix) throw unsupported('model', part, ' with a continuing_subword_prefix');
  if (part.dropout) throw unsupported('model', part, ' with dropout');
  const unknown = unknownToken == null ? undefined : idOf(unknownToken);
  /** Ranks by the two ids, and what a merge makes. */
  const ranks = new Map<number, number>();
  const made: number[] = [];
  if (!Array.isArray(merges)) throw invalidModel(`its merges are ${jsonExcerpt(merges)}, not a list`);
  for (const merge of merges as readonly (string | readonly string[])[]) {
    const [left, right] = halves(merge);
    ranks.set(idOf(left) * MOST_IDS + idOf(right), made.length);
    made.push(idOf(left + right));
  }
  const cache = new Map<string, number[]>();
  return (word) => {
    const known = cache.get(word);
    if (known !== undefined) return known;
    const ids = idsOf(word);
    if (word.length > CACHED_CHARACTERS) return ids;
    if (cache.size === CACHED_WORDS) cache.clear();
    cache.set(word, ids);
    return ids;
  };

  function idOf(token: string): number {
    const id = vocabulary.get(token);
    if (id === undefined)
      throw invalidModel(`its merges or unk_token have ${JSON.stringify(token)}, which is not in its vocabulary`);
    return id;
  }

  function idsOf(word: string): number[] {
    const whole = part.ignore_merges === true ? vocabulary.get(word) : undefined;
    return whole === undefined ? merged(symbolsOf(word)) : [whole];
  }

  /** The ids of the characters. The reference writes an unknown one when the next known one follows, after any bytes between them. */
  function symbolsOf(word: string): number[] {
    const characters = [...word];
    const last = characters.length - 1;
    if (suffix && last >= 0) characters[last] += suffix;
    const ids: number[] = [];
    let waiting = false;
    for (const character of characters) {
      const id = vocabulary.get(character);
      const bytes = id === undefined && part.byte_fallback === true ? bytesOf(character) : undefined;
      if (bytes !== undefined) {
        ids.push(...bytes);
        continue;
      }
      if (waiting && (id !== undefined || part.fuse_unk !== true)) ids.push(unknown!);
      waiting = id === undefined && unknown !== undefined;
      if (id !== undefined) ids.push(id);
    }
    if (waiting) ids.push(unknown!);
    return ids;
  }

  /** The tokens of the bytes; undefined if the vocabulary lacks one. */
  function bytesOf(character: string): number[] | undefined {
    const ids = Array.from(utf8.encode(character), (byte) =>
      vocabulary.get(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`),
    );
    return ids.every((id) => id !== undefined) ? ids : undefined;
  }

  function merged(ids: number[]): number[] {
    const next = ids.map((_, at) => at + 1);
    const previous = ids.map((_, at) => at - 1);
    const queue = new SmallestFirst();
    const offer = (left: number, right: number) => {
      const rank = left < 0 || right >= ids.length ? undefined : ranks.get(ids[left]! * MOST_IDS + ids[right]!);
      if (rank !== undefined) queue.push(rank * MOST_IDS + left);
    };
    for (let at = 0; at < ids.length; at++) offer(at, at + 1);
    for (let first = queue.pop(); first !== undefined; first = queue.pop()) {
      const at = first % MOST_IDS;
      const id = made[Math.floor(first / MOST_IDS)]!;
      const right = next[at]!;
      if (ids[at] === GONE || right >= ids.length) continue;
      // The pair may have changed since it was offered. As in the reference, another merge with the same result counts as the same.
      const rank = ranks.get(ids[at]! * MOST_IDS + ids[right]!);
      if (rank === undefined || made[rank] !== id) continue;
      ids[at] = id;
      ids[right] = GONE;
      const after = next[right]!;
      next[at] = after;
      if (after < ids.length) previous[after] = at;
      offer(previous[at]!, at);
      offer(at, after);
    }
    return ids.filter((id) => id !== GONE);
  }
}

const GONE = -1;

function halves(merge: string | readonly string[]): readonly [string, string] {
  const parts = typeof merge === 'string' ? merge.split(' ') : merge;
  if (parts?.length !== 2) throw invalidModel(`its merge ${jsonExcerpt(merge)} does not have two parts`);
  return [parts[0]!, parts[1]!];
}

/** A binary heap of numbers. */
class SmallestFirst {
  readonly #items: number[] = [];

  push(item: number): void {
    const items = this.#items;
    let at = items.length;
    for (let parent = (at - 1) >> 1; at > 0 && items[parent]! > item; parent = (at - 1) >> 1) {
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  pop(): number | undefined {
    const items = this.#items;
    const smallest = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return smallest;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && items[child + 1]! < items[child]!) child++;
      if (items[child]! >= last) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = last;
    return smallest;
  }
}
