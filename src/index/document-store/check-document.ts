import { isObject } from '../../base/objects.ts';
import { columnValues, valuesAt } from '../../engine/columns/column-values.ts';
import type { IndexDefinition } from './index-files.ts';
import type { Failure } from './operations.ts';
import { membersAt } from './written-row.ts';

/** Names that Elasticsearch keeps for itself. */
const METADATA = ['_id', '_index', '_source', '_type', '_routing', '_version', '_seq_no', '_primary_term', '_ignored'];
/** As deep as the bodies of searches. */
const MAX_DEPTH = 64;
/** A corpus line may have 64 MiB, and a character 3 bytes. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

/**
 * The document in the form in which it is stored, and the values of its vector, or why the index refuses it. Every stored document can be
 * indexed.
 */
export function checkDocument(
  text: string,
  definition: IndexDefinition,
): { source: string; dimension: number } | { failure: Failure } {
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
  const vectors = definition.vector === undefined ? [] : membersAt(members, definition.vector.field);
  const problem =
    (isDeeper(document, MAX_DEPTH) ? `it is nested deeper than ${MAX_DEPTH} levels` : undefined) ??
    metadataProblem(members) ??
    textProblem(members, definition) ??
    columnProblem(members, definition) ??
    vectorProblem(vectors, definition);
  if (problem !== undefined) return refused(problem);
  const unmapped = definition.strict
    ? Object.keys(members).find((name) => !Object.hasOwn(definition.properties, name))
    : undefined;
  if (unmapped !== undefined) {
    const reason = `[1:1] mapping set to strict, dynamic introduction of [${unmapped.slice(0, 100)}] within [_doc] is not allowed`;
    return { failure: { status: 400, type: 'strict_dynamic_mapping_exception', reason } };
  }
  // A corpus row is one line. Line ends in JSON stand only between its tokens.
  return {
    source: text.replaceAll(/[\r\n]+/g, ' ').trim(),
    dimension: Array.isArray(vectors[0]) ? vectors[0].length : 0,
  };
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

/** Most values of a vector, as in Elasticsearch. */
export const MAX_DIMENSION = 4_096;

function vectorProblem(
  [vector, ...others]: readonly unknown[],
  { vector: mapped }: IndexDefinition,
): string | undefined {
  if (vector === undefined || mapped === undefined) return undefined;
  const { field, dimension, similarity } = mapped;
  if (others.length > 0) return `the field [${field}] has ${others.length + 1} vectors, but a document has one`;
  if (!Array.isArray(vector) || vector.length === 0) return `the field [${field}] must be a list of numbers`;
  const values: readonly unknown[] = vector;
  const wrong = values.find((value) => typeof value !== 'number' || !Number.isFinite(Math.fround(value)));
  if (wrong !== undefined) {
    return `element_type [float] vectors only support finite values, but [${field}] has ${JSON.stringify(wrong).slice(0, 100)}`;
  }
  if (values.length > MAX_DIMENSION)
    return `a vector has at most ${MAX_DIMENSION} values, but [${field}] has ${values.length}`;
  if (dimension !== undefined && values.length !== dimension) {
    return `The [dense_vector] field [${field}] has a different number of dimensions [${values.length}] than defined in the mapping [${dimension}]`;
  }
  return lengthProblem(values as readonly number[], similarity);
}

/** Why a similarity does not take a vector, as a document's or a query's, in Elasticsearch's words. */
export function lengthProblem(
  vector: readonly number[],
  similarity: NonNullable<IndexDefinition['vector']>['similarity'],
): string | undefined {
  const square = vector.reduce((sum, value) => sum + Math.fround(value) ** 2, 0);
  const preview = `Preview of invalid vector: [${vector.slice(0, 5).join(', ')}${vector.length > 5 ? ', ...' : ''}]`;
  if (similarity === 'cosine' && Math.fround(square) === 0) {
    return `The [cosine] similarity does not support vectors with zero magnitude. ${preview}`;
  }
  if (similarity === 'dot_product' && Math.abs(square - 1) > LENGTH_TOLERANCE) {
    return `The [dot_product] similarity can only be used with unit-length vectors. ${preview}`;
  }
  return undefined;
}

/** How much the square of a length may differ from 1. */
const LENGTH_TOLERANCE = 1e-3;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}
