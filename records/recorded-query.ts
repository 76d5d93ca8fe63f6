import { parseNumbers } from '../src/passages/exact-numbers.ts';

/**
 * A line of `--record`: one query as the client meant it, with the hits of its reply. docs/recording.md describes the fields. A field
 * that the line does not have is absent; lines of version 0.1.0 have neither the fields from `turn` to `spanId` nor `cut`.
 */
export interface RecordedQuery {
  /** When the reply was made, in ISO 8601 (UTC, milliseconds): times compare as texts. */
  readonly time: string;
  /** Empty if the line has none, as `dialect`, `index` and `generation`. */
  readonly requestId: string;
  readonly dialect: string;
  /** Name of the index or group that was searched. */
  readonly index: string;
  /** Stands for the index's rows, model and settings. */
  readonly generation: string;
  /** The views that limited the search, with commas in between. */
  readonly view?: string;
  /** Position of the query in its request, from 0. */
  readonly place: number;
  /** Id of the rollout that the query belongs to. */
  readonly trajectory?: string;
  /** Where the trajectory comes from if the client did not name it: from its trace, or guessed from equal questions. */
  readonly trajectoryFrom?: 'traceparent' | 'guess';
  /** The agent's turn, counted as the client does; a guessed one from 1. */
  readonly turn?: number;
  /** Id of the question in its data set. */
  readonly questionId?: string;
  readonly dataset?: string;
  /** The run or checkpoint of the policy, and its training step. */
  readonly policy?: string;
  readonly step?: number;
  /** Such as `train` or `validation`, as the client names it. */
  readonly split?: string;
  readonly tags?: Readonly<Record<string, string>>;
  /** The ids of `traceparent` (W3C Trace Context), in hex. */
  readonly traceId?: string;
  readonly spanId?: string;
  readonly query: string;
  /** The original question. It was searched for if `template` (absent: that of the index) has it. */
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
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(check);

/** Fields that every line has. */
const REQUIRED: Readonly<Record<string, Check>> = {
  time: (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value),
  query: isText,
  place: isCount,
  k: isCount,
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
export function parseRecord(text: string): ParsedRecord {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'not valid JSON' };
  }
  if (typeof line !== 'object' || line === null || Array.isArray(line)) return wrong('not a JSON object');
  const values = line as Values;
  const has = (name: string): boolean => Object.hasOwn(values, name);
  for (const [name, check] of Object.entries(REQUIRED)) {
    if (!has(name) || !check(values[name])) return wrong(`no usable field ${name}`);
  }
  const known: Record<string, unknown> = { requestId: '', dialect: '', index: '', generation: '' };
  for (const name of Object.keys(REQUIRED)) known[name] = values[name];
  for (const [name, check] of Object.entries(OPTIONAL)) {
    if (!has(name)) continue;
    if (!check(values[name])) return wrong(`no usable field ${name}`);
    known[name] = values[name];
  }
  for (const name of ['hybrid', 'rerank', 'filter']) if (has(name)) known[name] = values[name];
  return withHits(known, text);
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

function wrong(reason: string): ParsedRecord {
  return { ok: false, reason: `not a line of --record (${reason})` };
}
