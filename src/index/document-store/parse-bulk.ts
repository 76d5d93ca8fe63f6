import { isObject } from '../../base/objects.ts';
import { parseNumbers } from '../passages/exact-numbers.ts';
import { type Failure, illegalArgument, type WriteItem } from './operations.ts';

/** An operation as a request names it. */
export interface RequestedOperation {
  readonly action: WriteItem['action'];
  readonly index: string;
  /** Absent: the index chooses one. */
  readonly id?: string;
  /** JSON text of the document; absent for a deletion. */
  readonly source?: string;
  /** Why it is refused although the request is not. */
  readonly failure?: Failure;
}

const ACTIONS = ['create', 'delete', 'index', 'update'] as const;
/** Replies have a hundred bytes and more for each. */
const MAX_OPERATIONS = 100_000;
const MAX_ID_BYTES = 512;
/** Problems that a failure lists. */
const MAX_PROBLEMS = 20;

/**
 * The operations of a `_bulk` body: a line with the action and, except for a deletion, a line with the document.
 *
 * @param index of operations that name none.
 * @returns a failure of the whole request if a line is not in this form.
 */
export function parseBulk(body: string, index: string | undefined): readonly RequestedOperation[] | Failure {
  if (body.trim() === '') return { status: 400, type: 'parse_exception', reason: 'request body is required' };
  if (!body.endsWith('\n')) return illegalArgument('The bulk request must be terminated by a newline [\\n]');
  const lines = body.split('\n');
  const operations: RequestedOperation[] = [];
  const problems: string[] = [];
  // The text after the last line end is empty.
  for (let at = 0; at < lines.length - 1; at++) {
    const line = lines[at]!;
    if (line.trim() === '') continue;
    const action = parseAction(line, at + 1);
    if ('reason' in action) return action;
    const target = action.index ?? index;
    if (target === undefined) problems.push('index is missing');
    problems.push(...idProblems(action));
    if (operations.length === MAX_OPERATIONS)
      return illegalArgument(`A bulk request has at most ${MAX_OPERATIONS} operations`);
    const operation = { ...action, index: target ?? '' };
    if (action.action === 'delete') {
      operations.push(operation);
      continue;
    }
    at++;
    if (at >= lines.length - 1)
      return illegalArgument(`The bulk request has no document after its action in line ${at}`);
    operations.push({ ...operation, source: lines[at]! });
  }
  if (operations.length === 0) return { status: 400, type: 'parse_exception', reason: 'request body is required' };
  return problems.length === 0 ? operations : validationFailure(problems);
}

/** Why no index can do an operation with this id. */
export function idProblems({ action, id }: Pick<RequestedOperation, 'action' | 'id'>): readonly string[] {
  if (id === undefined) return action === 'delete' || action === 'update' ? ['id is missing'] : [];
  const bytes = Buffer.byteLength(id);
  if (bytes <= MAX_ID_BYTES) return [];
  return [`id [${id.slice(0, 100)}…] is too long, must be no longer than ${MAX_ID_BYTES} bytes but was: ${bytes}`];
}

/** Elasticsearch's failure of a request that does not do any of its operations. */
export function validationFailure(problems: readonly string[]): Failure {
  const list = problems.slice(0, MAX_PROBLEMS).map((problem, i) => `${i + 1}: ${problem};`);
  return {
    status: 400,
    type: 'action_request_validation_exception',
    reason: `Validation Failed: ${list.join('')}`,
  };
}

type Action = Pick<RequestedOperation, 'action' | 'id' | 'failure'> & { readonly index: string | undefined };

function malformed(line: number, expected: string, found: string): Failure {
  return illegalArgument(`Malformed action/metadata line [${line}], expected ${expected} but ${found}`);
}

function parseAction(line: string, number: number): Action | Failure {
  let parsed: unknown;
  try {
    // Ids may be numbers beyond 2^53: every number stays its text.
    parsed = parseNumbers(line, (source) => source);
  } catch {
    return malformed(number, 'START_OBJECT', 'it is not JSON');
  }
  if (!isObject(parsed)) return malformed(number, 'START_OBJECT', foundToken(parsed));
  const [entry, ...others] = Object.entries(parsed);
  const [name, metadata] = entry ?? [];
  const action = ACTIONS.find((known) => known === name);
  if (action === undefined) {
    const found = name === undefined ? 'END_OBJECT' : name.slice(0, 100);
    return malformed(number, 'field [create], [delete], [index] or [update]', `found [${found}]`);
  }
  if (others.length > 0) return malformed(number, 'END_OBJECT', 'found [FIELD_NAME]');
  if (!isObject(metadata)) return malformed(number, 'START_OBJECT', foundToken(metadata));
  return readMetadata(action, metadata, number);
}

/** Members that change nothing if they have these values. */
const NEUTRAL: Readonly<Record<string, readonly unknown[]>> = {
  require_alias: [false, null],
  require_data_stream: [false, null],
  dynamic_templates: [null],
  list_executed_pipelines: [false, null],
  pipeline: [null, '_none'],
  routing: [null],
  version: [null],
  version_type: [null, 'internal'],
  if_seq_no: [null],
  if_primary_term: [null],
  retry_on_conflict: [null],
};

function readMetadata(
  action: WriteItem['action'],
  metadata: Readonly<Record<string, unknown>>,
  line: number,
): Action | Failure {
  let index: string | undefined;
  let id: string | undefined;
  let failure: Failure | undefined;
  for (const [name, value] of Object.entries(metadata)) {
    if (name === '_index' || name === '_id') {
      if (value !== null && typeof value !== 'string')
        return malformed(line, `a simple value for field [${name}]`, foundToken(value));
      if (name === '_index') index = value ?? undefined;
      else id = value ?? undefined;
    } else if (!Object.hasOwn(NEUTRAL, name)) {
      return illegalArgument(`Action/metadata line [${line}] contains an unknown parameter [${name.slice(0, 100)}]`);
    } else if (!NEUTRAL[name]!.includes(value)) {
      failure ??= illegalArgument(`[${name}] is not supported; leave it out`);
    }
  }
  return { action, index, id, failure };
}

function foundToken(value: unknown): string {
  if (value === null || value === undefined) return 'found [VALUE_NULL]';
  if (Array.isArray(value)) return 'found [START_ARRAY]';
  if (typeof value === 'object') return 'found [START_OBJECT]';
  return typeof value === 'boolean' ? 'found [VALUE_BOOLEAN]' : 'found [VALUE_STRING]';
}
