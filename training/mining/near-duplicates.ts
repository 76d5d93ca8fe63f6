import { comparableBody, comparableText } from '../../src/base/comparable-text.ts';
import { byCharacters } from './answer-rule.ts';

const SHINGLE_WORDS = 3;
const WORD = /[\p{L}\p{N}\p{M}]+/gu;

/**
 * The distinct runs of three consecutive words of a comparable text; a shorter text is one run. A character of Chinese, Japanese or
 * Thai is a word.
 *
 * @internal Exported for tests.
 */
export function shinglesOf(comparable: string): ReadonlySet<string> {
  const words = byCharacters(comparable).match(WORD) ?? [];
  if (words.length < SHINGLE_WORDS) return new Set(words.length === 0 ? [] : [words.join(' ')]);
  const shingles = new Set<string>();
  for (let i = 0; i + SHINGLE_WORDS <= words.length; i++) shingles.add(words.slice(i, i + SHINGLE_WORDS).join(' '));
  return shingles;
}

/**
 * Texts to compare with. The similarity of two texts is the containment of their shingles: the number that they share, divided
 * by the number in the text that has fewer. It is computed for every pair, without sketches, and is 1 where one text contains the other.
 */
export class NearDuplicates {
  readonly #sizes: number[] = [];
  /** Shingle → the texts that have it. */
  readonly #texts = new Map<string, number[]>();

  add(shingles: ReadonlySet<string>): void {
    const text = this.#sizes.push(shingles.size) - 1;
    for (const shingle of shingles) {
      const texts = this.#texts.get(shingle);
      if (texts === undefined) this.#texts.set(shingle, [text]);
      else texts.push(text);
    }
  }

  /** The largest similarity with one of the texts, from 0 to 1. */
  similarity(shingles: ReadonlySet<string>): number {
    const shared = new Map<number, number>();
    for (const shingle of shingles) {
      for (const text of this.#texts.get(shingle) ?? []) shared.set(text, (shared.get(text) ?? 0) + 1);
    }
    let best = 0;
    for (const [text, count] of shared) best = Math.max(best, count / Math.min(shingles.size, this.#sizes[text]!));
    return best;
  }
}

/** Passages whose texts are cached: near queries find the same ones. About 15 kB each. */
const CACHED = 4000;

export interface PassageTexts {
  readonly body: string;
  readonly whole: string;
  readonly shingles: ReadonlySet<string>;
}

const cache = new Map<string, PassageTexts>();

export function passageTexts({ text, contents }: { readonly text: string; readonly contents: string }): PassageTexts {
  const key = JSON.stringify([text, contents]);
  const known = cache.get(key);
  if (known !== undefined) return known;
  const whole = comparableText(contents);
  const body = comparableBody({ text, contents });
  const texts = { body, whole, shingles: shinglesOf(body) };
  if (cache.size >= CACHED) cache.delete(cache.keys().next().value!);
  cache.set(key, texts);
  return texts;
}
