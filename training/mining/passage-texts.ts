import { comparableBody, comparableText } from '../../src/base/comparable-text.ts';
import type { MinedPassage } from './mined-query.ts';
import { shinglesOf } from './near-duplicates.ts';

/** Passages whose texts are kept: near queries find the same ones. About 15 kB each. */
const KEPT = 4000;

/** The texts of a passage for comparisons. */
export interface PassageTexts {
  /** See `comparableBody`. */
  readonly body: string;
  /** Comparable text with the title. */
  readonly whole: string;
  readonly shingles: ReadonlySet<string>;
}

const kept = new Map<string, PassageTexts>();

/** Computes the texts of a passage, or takes those that an earlier call computed. */
export function passageTexts({ text, contents }: Pick<MinedPassage, 'text' | 'contents'>): PassageTexts {
  const key = JSON.stringify([text, contents]);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const whole = comparableText(contents);
  const body = comparableBody({ text, contents });
  const texts = { body, whole, shingles: shinglesOf(body) };
  if (kept.size >= KEPT) kept.delete(kept.keys().next().value!);
  kept.set(key, texts);
  return texts;
}
