import { isObject } from '../../base/objects.ts';
import { columnValues, valuesAt } from '../../engine/columns/column-values.ts';
import type { IndexDefinition } from './index-files.ts';
import type { Failure } from './operations.ts';

/** Names that Elasticsearch keeps for itself. */
const METADATA = ['_id', '_index', '_source', '_type', '_routing', '_version', '_seq_no', '_primary_term', '_ignored'];
/** As deep as the bodies of searches. */
const MAX_DEPTH = 64;
/** A corpus line may have 64 MiB, and a character 3 bytes. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** The document in the form in which it is stored, or why the index refuses it. Every stored document can be indexed. */
export function checkDocument(text: string, definition: IndexDefinition): { source: string } | { failure: Failure } {
  if (text.length > MAX_CHARACTERS) {
    return refused(`a document has at most ${MAX_CHARACTERS} characters, but this one has ${text.length}`);
  }
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return { failure: { ...FAILED, caused_by: { type: 'x_content_parse_exception', reason: 'it is not JSON' } } };
  }
  if (!isObject(document)) {
    return refused('a document must be a JSON object');
  }
  const members = document as Readonly<Record<string, unknown>>;
  const problem =
    (isDeeper(document, MAX_DEPTH) ? `it is nested deeper than ${MAX_DEPTH} levels` : undefined) ??
    metadataProblem(members) ??
    textProblem(members, definition) ??
    columnProblem(members, definition);
  if (problem !== undefined) return refused(problem);
  const unmapped = definition.strict
    ? Object.keys(members).find((name) => !Object.hasOwn(definition.properties, name))
    : undefined;
  if (unmapped !== undefined) {
    const reason = `[1:1] mapping set to strict, dynamic introduction of [${unmapped.slice(0, 100)}] within [_doc] is not allowed`;
    return { failure: { status: 400, type: 'strict_dynamic_mapping_exception', reason } };
  }
  // A corpus row is one line. Line ends in JSON stand only between its tokens.
  return { source: text.replaceAll(/[\r\n]+/g, ' ').trim() };
}

const FAILED = { status: 400, type: 'document_parsing_exception', reason: '[1:1] failed to parse' } as const;

function refused(problem: string): { failure: Failure } {
  return { failure: { ...FAILED, reason: `[1:1] failed to parse: ${problem}` } };
}

function metadataProblem(members: Readonly<Record<string, unknown>>): string | undefined {
  const name = METADATA.find((reserved) => Object.hasOwn(members, reserved));
  return name === undefined
    ? undefined
    : `Field [${name}] is a metadata field and cannot be added inside a document. Use the index API request parameters.`;
}

function textProblem(
  members: Readonly<Record<string, unknown>>,
  { fields, columns }: IndexDefinition,
): string | undefined {
  for (const field of fields) {
    const other = valuesAt(members, field).find((value) => typeof value !== 'string');
    if (other === undefined) continue;
    const found = typeof other === 'object' ? 'an object' : `a ${typeof other}`;
    return `field [${field}] must be a string or a list of strings, but has ${found}. Send it as a string`;
  }
  // A passage has at most one title.
  const { title = null } = members;
  if (columns.some(({ name }) => name === 'title') && title !== null && typeof title !== 'string') {
    return 'field [title] must be a string. Send a string, or leave the field out';
  }
  const searched = fields.filter((field) => field !== 'title');
  const other = ['text', 'contents'].find((name) => !fields.includes(name) && typeof members[name] === 'string');
  if (other === undefined || searched.some((field) => valuesAt(members, field).length > 0)) return undefined;
  return `it has its text in [${other}], but the index has the text field [${searched.join('], [')}]: map [${other}] when you make the index`;
}

function columnProblem(members: Readonly<Record<string, unknown>>, { columns }: IndexDefinition): string | undefined {
  for (const column of columns) {
    const values = columnValues(members, column);
    if ('wrong' in values) return `field ${values.wrong}`;
    if (!column.integer) continue;
    const fraction = values.find((value) => !Number.isSafeInteger(value));
    if (fraction !== undefined) return `field [${column.name}] has integers up to 2^53, but found ${String(fraction)}`;
  }
  return undefined;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}
