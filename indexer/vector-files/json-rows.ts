import { formatNamed, formatOfName } from '../../corpus/corpus-formats.ts';
import { parseJson } from '../../corpus/parse-json.ts';
import { DEFAULT_MAX_LINE_BYTES, readLines } from '../../corpus/read-lines.ts';
import { readParquetRows } from '../../corpus/read-parquet.ts';
import { isObject } from '../../src/base/objects.ts';
import { invalid } from './file-run.ts';
import type { VectorFileFormat, VectorRow } from './vector-file-set.ts';

/** Names of the vector, of several lists of numbers. */
const VECTOR_NAMES = ['vector', 'embedding', 'embeddings', 'emb', 'dense_vector'];
const ID_NAME = /^_?(doc_?|p|passage_?|psg_?)?id$/i;

/** JSON lines with a vector each, as pyserini.encode writes them: {"id", "contents", "vector"}. */
export const jsonl: VectorFileFormat = {
  name: 'jsonl',
  endings: ['.jsonl', '.jsonl.gz', '.jsonl.zst'],
  recognises: (head, path) =>
    formatOfName(path)?.format.name === 'jsonl' || /^\s*\{\s*"/.test(String.fromCharCode(...head)),
  open: (files, at) => ({ read: () => vectorRows(files[at]!.path, jsonLines(files[at]!.path)), next: at + 1 }),
};

/** Parquet with a column of lists of numbers. */
export const parquet: VectorFileFormat = {
  name: 'parquet',
  endings: ['.parquet'],
  recognises: (head) => String.fromCharCode(...head.subarray(0, 4)) === 'PAR1',
  open: (files, at) => ({ read: () => vectorRows(files[at]!.path, parquetRows(files[at]!.path)), next: at + 1 }),
};

/** The text of a row, or why it cannot be read. */
type RowText = string | { readonly reason: string };

async function* jsonLines(path: string): AsyncGenerator<RowText> {
  const { compression } = formatOfName(path) ?? formatNamed('jsonl');
  const options = {
    compression,
    newline: 'lf',
    maxLineBytes: DEFAULT_MAX_LINE_BYTES,
    onRead: () => undefined,
  } as const;
  for await (const lines of readLines(path, options)) {
    for (const line of lines) {
      if (!line.ok) yield { reason: line.reason };
      else if (line.text.trim() !== '') yield line.text;
    }
  }
}

async function* parquetRows(path: string): AsyncGenerator<RowText> {
  for await (const rows of readParquetRows(path)) for (const { row } of rows) yield row;
}

async function* vectorRows(path: string, texts: AsyncIterable<RowText>): AsyncGenerator<VectorRow> {
  let row = 0;
  let names: { readonly vector: string; readonly id: string | undefined } | undefined;
  for await (const text of texts) {
    const parsed = typeof text === 'string' ? parseJson(text) : ({ ok: false, ...text } as const);
    if (!parsed.ok) throw invalid(path, `row ${row}: ${parsed.reason}`);
    const { value } = parsed;
    if (!isObject(value)) throw invalid(path, `row ${row} is not an object`);
    names ??= namesIn(path, value);
    const vector = value[names.vector];
    if (!isVector(vector)) throw invalid(path, `row ${row}: ${names.vector} is not a list of numbers`);
    yield { vector, id: names.id === undefined ? undefined : idText(path, row, value[names.id]) };
    row++;
  }
}

/** The names of vector and id, from the first row. */
function namesIn(path: string, row: Readonly<Record<string, unknown>>) {
  const lists = Object.keys(row).filter((name) => isVector(row[name]));
  const vector = lists.length === 1 ? lists[0] : VECTOR_NAMES.find((name) => lists.includes(name));
  if (vector === undefined) {
    const found = lists.length === 0 ? `has ${Object.keys(row).join(', ')}` : `has the lists ${lists.join(', ')}`;
    throw invalid(
      path,
      `its rows have no vector: the first one ${found}; expected a list of numbers named vector or embedding`,
    );
  }
  return { vector, id: Object.keys(row).find((name) => ID_NAME.test(name)) };
}

function isVector(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'number');
}

function idText(path: string, row: number, id: unknown): string {
  if (typeof id === 'string' || typeof id === 'bigint' || Number.isSafeInteger(id)) return String(id);
  throw invalid(path, `row ${row}: its id is ${JSON.stringify(id) ?? 'missing'}; expected a text or an integer`);
}
