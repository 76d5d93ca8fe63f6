import { isObject } from '../../src/base/objects.ts';
import { parseNumbers } from '../../src/index/passages/exact-numbers.ts';
import type { QueryOrigin } from '../../src/server/recording/query-origin.ts';

/** The fields that the lines of queries and of openings share: the request, the index, and where the request comes from. */
export interface RecordHead extends QueryOrigin {
  /** When the reply was made, in ISO 8601 (UTC, milliseconds): times compare as texts. */
  readonly time: string;
  /** Empty if the line has none, as `dialect`, `index` and `generation`. */
  readonly requestId: string;
  readonly dialect: string;
  /** Name of the index or group that was searched. */
  readonly index: string;
  /** Stands for the index's rows, model and settings. */
  readonly generation: string;
  /** The views that limited the request, with commas in between. */
  readonly view?: string;
  /** Position of the query or opening in its request, from 0. */
  readonly place: number;
}

/** A line of `--record` for a passage or page that a client opened. */
export interface RecordedOpening extends RecordHead {
  /** What the client asked for: an id, a URL, a title, or `row N`. */
  readonly opened: string;
  /** The passages of the reply; empty if nothing has that name. */
  readonly rows: readonly number[];
  readonly ids: readonly (string | null)[];
  readonly indexes?: readonly string[];
}

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
  readonly error?: string;
}

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

/** Parses a line of `--record`: a query or an opening, or why it is neither. Fields that it does not know are left out. */
export function parseLine(
  text: string,
): { readonly query: RecordedQuery } | { readonly opening: RecordedOpening } | string {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return 'not valid JSON';
  }
  if (!isObject(line)) return wrong('not a JSON object');
  const has = (name: string): boolean => Object.hasOwn(line, name);
  const isOpening = has('opened') && !has('query');
  const required = REQUIRED[isOpening ? 'opening' : 'query'];
  const known: Record<string, unknown> = { requestId: '', dialect: '', index: '', generation: '' };
  for (const [name, check] of [...Object.entries(required), ...Object.entries(OPTIONAL)]) {
    if (!has(name) && !Object.hasOwn(required, name)) continue;
    if (!has(name) || !check(line[name])) return wrong(`no usable field ${name}`);
    known[name] = line[name];
  }
  const { rows = [], scores = [], ids = [], indexes = rows } = known as Readonly<Record<string, readonly unknown[]>>;
  if (isOpening) {
    if (ids.length !== rows.length || indexes.length !== rows.length) return wrong('rows and ids differ in length');
    return { opening: { ...known, ids: idTexts(ids, text) } as unknown as RecordedOpening };
  }
  if ([scores, ids, indexes].some(({ length }) => length !== rows.length)) {
    return wrong('rows, scores and ids differ in length');
  }
  if (known.rows === undefined && known.error === undefined) return wrong('neither hits nor an error');
  for (const name of ['hybrid', 'rerank', 'filter']) if (has(name)) known[name] = line[name];
  return { query: { ...known, rows, scores, ids: idTexts(ids, text) } as unknown as RecordedQuery };
}

/** Ids as text. An integer that JSON.parse rounded is read again with its digits. */
function idTexts(ids: readonly unknown[], text: string): (string | null)[] {
  const isRounded = ids.some((id) => typeof id === 'number' && !Number.isSafeInteger(id));
  const exact = isRounded ? (parseNumbers(text, (source) => source) as { ids: readonly unknown[] }).ids : ids;
  return exact.map((id) => (typeof id === 'string' || id === null ? id : JSON.stringify(id)));
}

function wrong(reason: string): string {
  return `not a line of --record (${reason})`;
}

/**
 * What a trajectory's id is unique with: trainers number the trajectories of each run and step anew, and every data set its questions.
 */
export function trajectoryKey(record: RecordHead): readonly (string | number | undefined)[] {
  const { dataset, policy, step, split, trajectory } = record;
  return [dataset, policy, step, split, trajectory];
}
