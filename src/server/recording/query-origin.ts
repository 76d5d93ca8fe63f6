import { isObject } from '../../base/objects.ts';
/**
 * Where a query comes from, as its client says: the rollout, the question and the policy. A value that the client does not give is
 * absent. Recorded, never used to search.
 */
export interface QueryOrigin {
  /** Id of the rollout: one attempt of an agent at one question. */
  readonly trajectory?: string;
  /** Where the trajectory comes from if the client did not name it. */
  readonly trajectoryFrom?: 'traceparent' | 'guess';
  /** The agent's turn, counted as the client does. */
  readonly turn?: number;
  readonly questionId?: string;
  readonly dataset?: string;
  /** The run or checkpoint of the policy, and its training step. */
  readonly policy?: string;
  readonly step?: number;
  /** Such as `train` or `validation`. */
  readonly split?: string;
  readonly tags?: Readonly<Record<string, string>>;
  /** The original question of a query that was sent without one. */
  readonly question?: string;
  /** The ids of `traceparent`, in hex. */
  readonly traceId?: string;
  readonly spanId?: string;
}

/** The values that clients give, and their types. */
export const ORIGIN_FIELDS = {
  trajectory: 'id',
  turn: 'count',
  questionId: 'id',
  dataset: 'id',
  policy: 'id',
  step: 'count',
  split: 'id',
  tags: 'tags',
  question: 'text',
} as const satisfies Partial<Record<keyof QueryOrigin, OriginType>>;

export type OriginField = keyof typeof ORIGIN_FIELDS;

/** `count`: a whole number from 0. `tags`: texts by name. */
type OriginType = 'id' | 'count' | 'text' | 'tags';

/** Longest id, and longest name and value of a tag, in UTF-16 units. */
const MAX_ID_CHARACTERS = 256;
const MAX_QUESTION_CHARACTERS = 16_384;
const MAX_TAGS = 32;

/** Why a value is not recorded: the labels of its metric. */
export const ORIGIN_FAULTS = ['type', 'too-long', 'characters', 'length', 'unknown'] as const;
export type OriginFault = (typeof ORIGIN_FAULTS)[number];

export type OriginValue =
  | { readonly ok: true; readonly value: string | number | Readonly<Record<string, string>> }
  | { readonly ok: false; readonly fault: OriginFault; readonly reason: string };

/**
 * Reads a value of a field. Whole numbers are ids too, as text. A text may stand for a number or, as `name=value,name=value`, for tags,
 * because headers and URLs have only texts.
 */
export function readOriginValue(field: OriginField, value: unknown): OriginValue {
  switch (ORIGIN_FIELDS[field]) {
    case 'id':
      return readText(typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value, {
        expected: 'a text or a whole number',
        most: MAX_ID_CHARACTERS,
        forbidden: CONTROL,
      });
    case 'text':
      return readText(value, { expected: 'a text', most: MAX_QUESTION_CHARACTERS, forbidden: NOT_TEXT });
    case 'count':
      return readCount(value);
    case 'tags':
      return readTags(value);
  }
}

const CONTROL = /[\p{Cc}\p{Cs}]/u;
/** Questions may have several lines. */
const NOT_TEXT = /[\p{Cs}\0]/u;

function readText(
  value: unknown,
  { expected, most, forbidden }: { expected: string; most: number; forbidden: RegExp },
): OriginValue {
  if (typeof value !== 'string') return refused('type', `expected ${expected}`);
  const text = value.trim();
  if (text.length > most) return refused('too-long', `expected at most ${most} characters, got ${text.length}`);
  if (text === '') return refused('characters', 'expected a text that is not blank');
  if (forbidden.test(text)) return refused('characters', 'expected no control characters');
  return { ok: true, value: text };
}

function readCount(value: unknown): OriginValue {
  const count = typeof value === 'string' && /^\s*\d{1,16}\s*$/.test(value) ? Number(value) : value;
  if (typeof count === 'number' && Number.isSafeInteger(count) && count >= 0) return { ok: true, value: count };
  return refused('type', 'expected a whole number from 0');
}

function readTags(value: unknown): OriginValue {
  const pairs = typeof value === 'string' ? pairsOf(value) : entriesOf(value);
  if (pairs === undefined) return refused('type', 'expected an object of texts, or name=value,name=value');
  if (pairs.length > MAX_TAGS) return refused('too-long', `expected at most ${MAX_TAGS} tags, got ${pairs.length}`);
  const tags: [string, string][] = [];
  for (const [name, text] of pairs) {
    if (name.length > MAX_ID_CHARACTERS || text.length > MAX_ID_CHARACTERS) {
      return refused('too-long', `expected names and values of at most ${MAX_ID_CHARACTERS} characters`);
    }
    if (name === '') return refused('characters', 'expected a name for each tag');
    if (CONTROL.test(name + text)) return refused('characters', 'expected no control characters');
    tags.push([name, text]);
  }
  // Not by assignment: a tag may be called __proto__.
  return { ok: true, value: Object.fromEntries(tags) };
}

/** A tag without `=` has the value "". */
function pairsOf(text: string): [string, string][] {
  return text
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const equals = part.indexOf('=');
      return equals === -1 ? [part.trim(), ''] : [part.slice(0, equals).trim(), part.slice(equals + 1).trim()];
    });
}

/** Undefined if a value is neither a text nor a number or boolean. */
function entriesOf(value: unknown): [string, string][] | undefined {
  if (!isObject(value)) return undefined;
  const pairs: [string, string][] = [];
  for (const [name, each] of Object.entries(value)) {
    if (!['string', 'number', 'boolean'].includes(typeof each)) return undefined;
    pairs.push([name.trim(), String(each).trim()]);
  }
  return pairs;
}

function refused(fault: OriginFault, reason: string): OriginValue {
  return { ok: false, fault, reason };
}
