import { createHmac } from 'node:crypto';
import { usageError } from '../../src/base/errors.ts';
import { parseKeepingNumbers } from '../../src/index/passages/exact-numbers.ts';
import { COMPOSED_SEPARATOR, composedParts } from '../../src/server/recording/composed-query.ts';

/** Fields of a record that can be hashed: texts, and lists or objects of texts. */
const HASHABLE = [
  'query',
  'question',
  'history',
  'trajectory',
  'questionId',
  'dataset',
  'policy',
  'split',
  'tags',
  'requestId',
  'traceId',
  'spanId',
  'view',
  'index',
  'ids',
  'opened',
] as const;
const DROPPABLE = [...HASHABLE, 'turn', 'step', 'filter'] as const;

/** What replaces fields that every record must have. */
const BLANK: Readonly<Record<string, unknown>> = { query: '', ids: null, opened: '' };

/** The texts that the member `text` of `answer` is composed of. */
const COMPOSED: readonly string[] = ['query', 'question', 'history'];

const HASH_DIGITS = 32;

interface Redaction {
  readonly drop: readonly string[];
  readonly hash: readonly string[];
  /** Secret of the hashes; needed if `hash` has fields. */
  readonly key?: Uint8Array;
}

/**
 * A function from lines to lines without the fields of `drop`, and with hashes (HMAC-SHA-256) in place of the texts of `hash`. Equal texts
 * have equal hashes under one key, whatever their field, so that records can still be joined by them, and a history with its queries.
 *
 * A history that is not named is treated as the query is, else as the question is, because it has the texts of both. A question that is
 * named without the query is also replaced in front of ` [SEP] ` in the query.
 *
 * @throws TrawlError USAGE for a field that a record does not have, or hashes without a key.
 */
export function redactor({ drop: dropped, hash: hashedFields, key }: Redaction): (line: string) => string {
  check('drop', dropped, DROPPABLE);
  check('hash', hashedFields, HASHABLE);
  const { drop, hash } = withHistory(dropped, hashedFields);
  const both = drop.find((name) => hash.includes(name));
  if (both !== undefined) throw usageError(`${both} is in --drop and in --hash; name it in one of them.`);
  if (hash.length > 0 && key === undefined) {
    throw usageError('--hash needs --key-file: a file with a secret, such as 32 random bytes.');
  }
  const hashed = (text: string): string => createHmac('sha256', key!).update(text).digest('hex').slice(0, HASH_DIGITS);
  return (line) => {
    const record = parseKeepingNumbers(line) as Record<string, unknown>;
    if (COMPOSED.some((name) => drop.includes(name) || hash.includes(name))) removeComposedText(record);
    if (!drop.includes('query') && !hash.includes('query')) {
      if (drop.includes('question')) replaceQuestion(record, () => '');
      if (hash.includes('question')) replaceQuestion(record, (question) => `${hashed(question)}${COMPOSED_SEPARATOR}`);
    }
    for (const name of drop) {
      if (!Object.hasOwn(record, name)) continue;
      if (!Object.hasOwn(BLANK, name)) delete record[name];
      else record[name] = Array.isArray(record[name]) ? record[name].map(() => BLANK[name]) : BLANK[name];
    }
    for (const name of hash) if (Object.hasOwn(record, name)) record[name] = hashTexts(record[name], hashed);
    return JSON.stringify(record);
  };
}

/** Adds the history to the fields of its query, else of its question, unless it is named. */
function withHistory(drop: readonly string[], hash: readonly string[]): Pick<Redaction, 'drop' | 'hash'> {
  if (drop.includes('history') || hash.includes('history')) return { drop, hash };
  for (const name of ['query', 'question']) {
    if (drop.includes(name)) return { drop: [...drop, 'history'], hash };
    if (hash.includes(name)) return { drop, hash: [...hash, 'history'] };
  }
  return { drop, hash };
}

/** Replaces the question, with the separator, that the client put in front of the sub-query. */
function replaceQuestion(record: Record<string, unknown>, replaced: (question: string) => string): void {
  const { query, question } = record;
  if (typeof query !== 'string') return;
  const parts = composedParts(query, typeof question === 'string' ? question : undefined);
  if (parts !== undefined) record.query = replaced(parts.question) + parts.query;
}

function removeComposedText({ answer }: Record<string, unknown>): void {
  if (typeof answer === 'object' && answer !== null) delete (answer as { text?: unknown }).text;
}

function hashTexts(value: unknown, hashed: (text: string) => string): unknown {
  if (value === null) return null;
  if (typeof value === 'string') return hashed(value);
  if (Array.isArray(value)) return value.map((each: unknown) => hashTexts(each, hashed));
  // A number that keeps its notation (`parseKeepingNumbers`) or a boolean, which an id can be.
  if (typeof value !== 'object' || JSON.stringify(value)[0] !== '{') return hashed(JSON.stringify(value));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, hashTexts(each, hashed)]));
}

function check(option: string, names: readonly string[], known: readonly string[]): void {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw usageError(`--${option} names ${JSON.stringify(unknown)}; expected some of ${known.join(', ')}.`);
}
