import { isObject } from '../../src/base/objects.ts';
import { parseNumbers } from '../../src/index/passages/exact-numbers.ts';
import type { RecordHead } from './record-head.ts';
import type { RecordedOpening } from './recorded-opening.ts';

/**
 * A line of `--record`: one query as the client meant it, with the hits of its reply. docs/recording.md describes the fields. A field
 * that the line does not have is absent; lines of version 0.1.0 have neither the fields from `turn` to `spanId` nor `cut`.
 */
export interface RecordedQuery extends RecordHead {
  readonly query: string;
  /** The original question. It was searched for if `template` (absent: the index's template) has it. */
  readonly question?: string;
  /** The agent's earlier queries, oldest first. */
  readonly history?: readonly string[];
  /** Hits that the client asked for. */
  readonly k: number;
  /** Absent: the default of the index. */
  readonly mode?: string;
  /** Absent: the template of the index. */
  readonly template?: string;
  readonly truncate?: string;
  /** What the token limit cut off: `tail`, `history`, `question` or `question-and-tail`. Absent: nothing. */
  readonly cut?: string;
  /** Settings of the search, as the line has them. */
  readonly hybrid?: unknown;
  readonly rerank?: unknown;
  readonly filter?: unknown;
  /** The hits, best first: rows, scores and ids have the same length. Empty for a failed query. */
  readonly rows: readonly number[];
  /** Larger is nearer. */
  readonly scores: readonly number[];
  /** Ids as text, integers with all their digits; null for a passage without an id. */
  readonly ids: readonly (string | null)[];
  /** In a group: the index of each hit, to which its row belongs. */
  readonly indexes?: readonly string[];
  /** In a group: the indexes that failed. */
  readonly failedIndexes?: readonly string[];
  /** How the server changed the answer on purpose: `droppedGold` and `distractors` (passages), `delayMs`. */
  readonly perturbed?: Readonly<Record<string, number>>;
  /** The code of the error for which the query has no hits. */
  readonly error?: string;
}

export type ParsedRecord =
  | { readonly ok: true; readonly query: RecordedQuery }
  | { readonly ok: false; readonly reason: string };

/** A line of a query, or of an opening. */
type ParsedLine = ParsedRecord | { readonly ok: true; readonly opening: RecordedOpening };

type Values = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const isTexts = isListOf(isText);
const isObjectOf =
  (check: Check): Check =>
  (value) =>
    isObject(value) && Object.values(value).every(check);

const isTime: Check = (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value);

/** Fields that every line of a query has, and every line of an opening. */
const REQUIRED: Readonly<Record<'query' | 'opening', Readonly<Record<string, Check>>>> = {
  query: { time: isTime, query: isText, place: isCount, k: isCount },
  opening: { time: isTime, opened: isText, place: isCount, rows: isListOf(isCount) },
};

const OPTIONAL: Readonly<Record<string, Check>> = {
  requestId: isText,
  dialect: isText,
  index: isText,
  generation: isText,
  view: isText,
  trajectory: isText,
  trajectoryFrom: (value) => value === 'traceparent' || value === 'guess',
  turn: isCount,
  questionId: isText,
  dataset: isText,
  policy: isText,
  step: isCount,
  split: isText,
  tags: isObjectOf(isText),
  traceId: isText,
  spanId: isText,
  question: isText,
  history: isTexts,
  mode: isText,
  template: isText,
  truncate: isText,
  cut: isText,
  rows: isListOf(isCount),
  scores: isListOf((value) => typeof value === 'number'),
  ids: (value) => Array.isArray(value),
  indexes: isTexts,
  failedIndexes: isTexts,
  perturbed: isObjectOf(isCount),
  error: isText,
};

/** Parses a line of `--record`. Fields that it does not know are left out. */
export function parseLine(text: string): ParsedLine {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'not valid JSON' };
  }
  if (!isObject(line)) return wrong('not a JSON object');
  const values = line as Values;
  const has = (name: string): boolean => Object.hasOwn(values, name);
  const isOpening = has('opened') && !has('query');
  const required = REQUIRED[isOpening ? 'opening' : 'query'];
  for (const [name, check] of Object.entries(required)) {
    if (!has(name) || !check(values[name])) return wrong(`no usable field ${name}`);
  }
  const known: Record<string, unknown> = { requestId: '', dialect: '', index: '', generation: '' };
  for (const name of Object.keys(required)) known[name] = values[name];
  for (const [name, check] of Object.entries(OPTIONAL)) {
    if (!has(name)) continue;
    if (!check(values[name])) return wrong(`no usable field ${name}`);
    known[name] = values[name];
  }
  if (isOpening) return openingWithIds(known, text);
  for (const name of ['hybrid', 'rerank', 'filter']) if (has(name)) known[name] = values[name];
  return withHits(known, text);
}

function openingWithIds(known: Record<string, unknown>, text: string): ParsedLine {
  const { rows, ids = [], indexes } = known as { rows: unknown[]; ids?: unknown[]; indexes?: unknown[] };
  if (rows.length !== ids.length || (indexes?.length ?? rows.length) !== rows.length) {
    return wrong('rows and ids differ in length');
  }
  return { ok: true, opening: { ...known, ids: idTexts(ids, text) } as unknown as RecordedOpening };
}

function withHits(known: Record<string, unknown>, text: string): ParsedRecord {
  const { rows = [], scores = [], indexes } = known as { rows?: unknown[]; scores?: unknown[]; indexes?: unknown[] };
  const ids = (known.ids ?? []) as readonly unknown[];
  if (rows.length !== scores.length || rows.length !== ids.length || (indexes?.length ?? rows.length) !== rows.length) {
    return wrong('rows, scores and ids differ in length');
  }
  if (known.rows === undefined && known.error === undefined) return wrong('neither hits nor an error');
  const query = { ...known, rows, scores, ids: idTexts(ids, text) };
  return { ok: true, query: query as unknown as RecordedQuery };
}

/** Ids as text. An integer that JSON.parse rounded is read again with its digits. */
function idTexts(ids: readonly unknown[], text: string): (string | null)[] {
  const isRounded = ids.some((id) => typeof id === 'number' && !Number.isSafeInteger(id));
  const exact = isRounded ? (parseNumbers(text, (source) => source) as { ids: readonly unknown[] }).ids : ids;
  return exact.map((id) => (typeof id === 'string' || id === null ? id : JSON.stringify(id)));
}

function wrong(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason: `not a line of --record (${reason})` };
}
